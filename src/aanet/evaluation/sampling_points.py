"""The sampling points of adaptive aggregation, as in the paper's figure.

For a pixel p, a deformable convolution reads the matching cost at p + p_k + Δp_k with the weight m_k (eq. 4).
The layers are stacked: the value at each of these points was computed from points of the previous layer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from aanet.errors import AanetError
from aanet.evaluation.regions import textureless
from aanet.inference.padding import padding_for
from aanet.models.aggregation import AdaptiveAggregation
from aanet.models.layers import DeformConv2d
from aanet.models.network import StereoNetwork, normalize
from aanet.typing import FloatMap, Image

Pixel = tuple[int, int]  # x, y
_MAX_POINTS = 9**4  # per layer, those with the largest weights; more would overlap in the figure


@dataclass(frozen=True)
class SamplingPoints:
    """The points that the aggregation of one pixel reads."""

    pixel: Pixel
    points: NDArray[np.float32]  # [N, 2]: x, y in pixels of the image
    weights: NDArray[np.float32]  # [N]: the product of m_k over the layers; 1 in an ordinary convolution


@dataclass(frozen=True)
class Field:
    """The sampling points of one layer for every pixel of its grid: [P, h, w] each."""

    x: NDArray[np.float32]
    y: NDArray[np.float32]
    weight: NDArray[np.float32]


@dataclass(frozen=True)
class Fields:
    """The sampling points of all adaptive layers of the finest scale, and where their grid lies.

    Attributes:
        layers: First to last.
        regular: The window from which every layer starts.
        step: Pixels of the image per pixel of the grid.
        shift: Columns and rows of padding before the image.
    """

    layers: list[Field]
    regular: Field
    step: float
    shift: NDArray[np.float32]

    def to_grid(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        """Convert points [..., 2] of the image to the grid."""
        return ((points + self.shift + 0.5) / self.step - 0.5).astype(np.float32)

    def to_image(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        """Convert points [..., 2] of the grid to the image."""
        return ((points + 0.5) * self.step - 0.5 - self.shift).astype(np.float32)


def sampling_points(
    network: StereoNetwork, left: Image, right: Image, pixels: Sequence[Pixel], levels: int = 1
) -> list[SamplingPoints]:
    """Return the sampling points of each of the pixels.

    Args:
        network: One with adaptive intra-scale aggregation.
        left: RGB [H, W, 3].
        right: The same for the right camera.
        pixels: (x, y) in the left image.
        levels: Number of layers to follow back from the last one; each multiplies the points by 18.
    """
    height, width = left.shape[:2]
    for x, y in pixels:
        if not (0 <= x < width and 0 <= y < height):
            raise AanetError(f"The pixel {x},{y} is outside the image of width {width} and height {height}.")
    layers = adaptive_layers(network)
    if not 1 <= levels <= len(layers):
        raise AanetError(
            f"The number of levels must be 1 to {len(layers)}, the adaptive layers; got {levels}."
        )
    fields = record_fields(network, left, right)
    result = []
    for pixel in pixels:
        start = fields.to_grid(np.array([pixel], np.float32))
        points, weights = _follow(fields.layers[-levels:], start)
        result.append(SamplingPoints(pixel, fields.to_image(points), weights))
    return result


def record_fields(network: StereoNetwork, left: Image, right: Image) -> Fields:
    """Match a pair of RGB images [H, W, 3] and record where every adaptive layer samples."""
    height, width = left.shape[:2]
    padding = padding_for(height, width, network.sizes)
    pair = [padding.pad((image.transpose(2, 0, 1)[None] / 255).astype(np.float32)) for image in (left, right)]
    layers = adaptive_layers(network)
    recorded = _record(network, layers, pair)
    _, rows, columns = recorded[0].x.shape
    regular = regular_window(layers[0], rows, columns)
    shift = np.array((padding.left, padding.top), np.float32)
    return Fields(recorded, regular, pair[0].shape[-1] / columns, shift)


def adaptive_layers(network: StereoNetwork) -> list[DeformConv2d]:
    """The deformable convolutions of the finest scale's aggregation, first to last."""
    layers: list[DeformConv2d] = []
    if isinstance(network.aggregation, AdaptiveAggregation):
        for module in network.aggregation.stack:
            finest = module.get_submodule("intra_scale.0")
            layers += [part for part in finest.modules() if isinstance(part, DeformConv2d)]
    if not layers:
        raise AanetError(
            f"{network.architecture.builder} has no sampling points: its aggregation has no deformable "
            "convolutions."
        )
    return layers


@torch.inference_mode()
def _record(network: StereoNetwork, layers: list[DeformConv2d], pair: list[FloatMap]) -> list[Field]:
    """Match the padded pair [1, 3, H, W] and record the points that every layer predicts."""
    fields: list[Field] = []

    def note(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        assert isinstance(layer, DeformConv2d)
        fields.append(_field(*layer.predict_points(inputs[0]), layer))

    hooks = [layer.register_forward_pre_hook(note) for layer in layers]
    try:
        left, right = (normalize(torch.from_numpy(image)) for image in pair)
        features = network.eval().extract(left, right)
        network.aggregate(network.cost_volumes(features), features)
    finally:
        for hook in hooks:
            hook.remove()
    return fields


def regular_window(layer: DeformConv2d, height: int, width: int) -> Field:
    """The points of a layer without offsets and weights: a dilated window, the same in every group."""
    kernel = layer.DILATION * (np.arange(layer.KERNEL) - layer.KERNEL // 2)
    rows, columns = (
        np.tile(axis.ravel(), layer.GROUPS)[:, None, None]
        for axis in np.meshgrid(kernel, kernel, indexing="ij")
    )
    x, y = np.broadcast_arrays(columns + np.arange(width), rows + np.arange(height)[:, None])  # [G·9, h, w]
    return Field(x.astype(np.float32), y.astype(np.float32), np.ones(x.shape, np.float32))


def _field(offset: Tensor, mask: Tensor, layer: DeformConv2d) -> Field:
    """Convert the predictions [1, G·2·9, h, w] and [1, G·9, h, w] of a layer to positions on its grid."""
    height, width = offset.shape[2:]
    moved = offset[0].view(-1, 2, height, width).numpy()  # [G·9, (y, x), h, w]
    window = regular_window(layer, height, width)
    return Field(window.x + moved[:, 1], window.y + moved[:, 0], mask[0].numpy())


def _follow(
    fields: list[Field], start: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return points [N, 2] and weights [N] on the grid, from the last field back to the first."""
    points, weights = start, np.ones(len(start), np.float32)
    for field in reversed(fields):
        _, height, width = field.x.shape
        column = np.clip(np.rint(points[:, 0]), 0, width - 1).astype(int)
        row = np.clip(np.rint(points[:, 1]), 0, height - 1).astype(int)
        x, y = field.x[:, row, column], field.y[:, row, column]  # [18, N]
        reached = (weights * field.weight[:, row, column]).ravel()
        inside = ((x > -1) & (x < width) & (y > -1) & (y < height)).ravel()  # zero padding
        order = np.argsort(-reached[inside], kind="stable")[:_MAX_POINTS]
        points = np.stack((x.ravel(), y.ravel()), axis=1)[inside][order].astype(np.float32)
        weights = reached[inside][order]
    return points, weights


def example_pixels(left: Image, disparity: FloatMap) -> list[Pixel]:
    """Pick the paper's two cases: a pixel next to an edge, and the center of a textureless area."""
    height, width = disparity.shape
    border = min(height, width) // 10
    inner = np.zeros((height, width), bool)
    inner[border : height - border, border : width - border] = True
    jump = cv2.Sobel(cv2.GaussianBlur(disparity, (0, 0), 1.5), cv2.CV_32F, 1, 0)  # < 0: the near side is left
    row, column = np.unravel_index(np.argmin(np.where(inner, jump, np.inf)), jump.shape)
    beside = (max(int(column) - 4, 0), int(row))  # on the foreground, a few pixels from the edge
    plain = (textureless(left) & inner).astype(np.uint8)
    row, column = np.unravel_index(np.argmax(cv2.distanceTransform(plain, cv2.DIST_L2, 3)), plain.shape)
    return [beside, (int(column), int(row))]


def draw_points(image: Image, points: SamplingPoints) -> Image:
    """Draw the points in red, fainter for smaller weights, and the pixel in green."""
    size = max(image.shape[1] // 250, 2)
    reach = size + 2  # radius of the pixels that a point touches
    height, width = image.shape[:2]
    margin = 2 * reach  # so that the patch around every visible point is inside the canvas
    canvas: Image = np.pad(image, ((margin, margin), (margin, margin), (0, 0)))
    grown = 8  # drawn to an eighth of a pixel
    strongest = float(points.weights.max(initial=1e-6))
    for (x, y), weight in sorted(zip(points.points, points.weights, strict=True), key=lambda each: each[1]):
        share = 0.25 + 0.75 * float(weight) / strongest
        left, top = math.floor(x), math.floor(y)
        if not (-reach <= left < width + reach and -reach <= top < height + reach):
            continue
        patch = canvas[top + reach : top + 3 * reach + 1, left + reach : left + 3 * reach + 1]
        middle = (round((float(x) - left + reach) * grown), round((float(y) - top + reach) * grown))
        drawn = cv2.circle(patch.copy(), middle, size * grown, (230, 25, 25), -1, cv2.LINE_AA, shift=3)
        patch[...] = cv2.addWeighted(drawn, share, patch, 1 - share, 0)
    canvas = canvas[margin:-margin, margin:-margin].copy()
    cv2.circle(canvas, points.pixel, size + 1, (30, 220, 60), -1, cv2.LINE_AA)
    return canvas
