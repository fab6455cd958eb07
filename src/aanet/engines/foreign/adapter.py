"""A foreign network as an engine: from images in 0 … 1 to its inputs, from its output to disparities.

Foreign networks have no confidence of their own. Theirs is how well the match explains the left image: the
structural similarity of the left image and the right one, sampled where the disparities point, in windows of
7 pixels; 0 where they point outside of the right image. It costs a few milliseconds. It finds occlusions and
gross errors with texture around them, not errors within untextured surfaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.engines.foreign.graph import Graph, find
from aanet.engines.foreign.running import Arrays, Runner
from aanet.engines.foreign.spec import DEFAULT_MAX_DISPARITY, ForeignSpec, ImageSpec, InputSpec, OutputSpec
from aanet.errors import ReadError
from aanet.inference import memory
from aanet.inference.resizing import resize_planes
from aanet.inference.size_rule import SizeRule
from aanet.inference.spec import Maps, NetworkSpec
from aanet.typing import FloatMap

_FIXED_SIZE_BYTES = 100  # per pixel of an image that is resized: its copies, and the maps for the confidence
_WINDOW = (7, 7)
_STABILITY = (0.01**2, 0.03**2)  # the constants of structural similarity, for images in 0 … 1


class ForeignEngine:
    """Runs one pair at a time, resizing it if the network takes a single size."""

    def __init__(self, runner: Runner, spec: ForeignSpec, bytes_per_pixel: int) -> None:
        """Set the engine up.

        Args:
            runner: The network.
            spec: How to feed and read it.
            bytes_per_pixel: Peak memory of a prediction.
        """
        self.name = runner.name
        self.foreign, self._runner = spec, runner
        fixed = spec.size.fixed
        resized = "" if fixed is None else f", images resized to {fixed[0]}×{fixed[1]}"
        self.description = f"{runner.description}, foreign network{resized}"
        self.spec = NetworkSpec(
            name=spec.name,
            max_disparity=spec.max_disparity or DEFAULT_MAX_DISPARITY,
            bytes_per_pixel=bytes_per_pixel if fixed is None else _FIXED_SIZE_BYTES,
            correlates=False,
            sizes=SizeRule(spec.size.multiple, spec.size.minimum) if fixed is None else SizeRule(),
        )

    def __call__(self, left: FloatMap, right: FloatMap) -> Maps:
        """See `Engine`."""
        disparities = np.stack([self._match(*pair) for pair in zip(left, right, strict=True)])
        pairs = zip(left, right, disparities, strict=True)
        return disparities, np.stack([similarity(*each) for each in pairs])

    def available_memory(self) -> int:
        """Bytes of main memory."""
        return memory.available_memory()

    def _match(self, left: FloatMap, right: FloatMap) -> FloatMap:
        outputs = self._runner(network_inputs(self.foreign, self._runner.graph, left, right))
        return read_disparity(self.foreign, self._runner.graph, outputs, left.shape[1:])


def network_inputs(spec: ForeignSpec, graph: Graph, left: FloatMap, right: FloatMap) -> Arrays:
    """Return the arrays for a pair of RGB images in 0 … 1, [3, H, W] each, by the names of the ports."""
    size = spec.size.fixed or left.shape[1:]
    arrays = {}
    for each in spec.inputs:
        port = find(graph.inputs, each.name)
        if port is None:
            known = ", ".join(port.name for port in graph.inputs)
            raise ReadError(f"The network {spec.name} has no input {each.name!r}; it has {known}.")
        scaled = (max(round(size[0] * each.scale), 1), max(round(size[1] * each.scale), 1))
        tensor = _tensor(each, spec.image, left, right, scaled)
        if not port.takes(tensor.shape):  # OpenVINO would change the network to fit
            given = " × ".join(map(str, tensor.shape))
            raise ReadError(f"The network {spec.name} cannot run on {given} numbers; it takes {port.shown}.")
        arrays[port.name] = _as_type(tensor, port.type)
    missing = [port.name for port in graph.inputs if port.name not in arrays]
    if missing:
        raise ReadError(f"The spec of {spec.name} does not say what the input {missing[0]!r} takes.")
    return arrays


def _tensor(
    each: InputSpec, image: ImageSpec, left: FloatMap, right: FloatMap, size: tuple[int, int]
) -> FloatMap:
    views = {"left": left, "right": right}
    stacked = [_pixels(resize_planes(views[side], size), image) for side in each.content.split("+")]
    tensor = np.concatenate(stacked)[None]  # [1, C, H, W]
    return np.ascontiguousarray(tensor if image.layout == "NCHW" else tensor.transpose(0, 2, 3, 1))


def _pixels(rgb: FloatMap, image: ImageSpec) -> FloatMap:
    """Return an image [3, H, W] in the network's colors and numbers, [C, H, W]."""
    colors = {"RGB": rgb, "BGR": rgb[::-1], "gray": _gray(rgb)[None]}[image.color]
    low, high = image.range
    values: FloatMap = colors * np.float32(high - low) + np.float32(low)
    if image.mean:
        values = values - np.array(image.mean, np.float32)[:, None, None]
    if image.std:
        values = values / np.array(image.std, np.float32)[:, None, None]
    return values


def _gray(rgb: FloatMap) -> FloatMap:
    gray: FloatMap = cv2.cvtColor(np.ascontiguousarray(rgb.transpose(1, 2, 0)), cv2.COLOR_RGB2GRAY).astype(
        np.float32
    )
    return gray


def _as_type(tensor: FloatMap, kind: str) -> NDArray[Any]:
    dtype = np.dtype(kind)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.clip(np.rint(tensor), limits.min, limits.max).astype(dtype)
    return tensor.astype(dtype)


def read_disparity(
    spec: ForeignSpec, graph: Graph, outputs: Mapping[str, NDArray[Any]], size: tuple[int, ...]
) -> FloatMap:
    """Return the disparity [H, W] of images of this size; 0 where the network computes no number."""
    port = find(graph.outputs, spec.output.name)
    if port is None:
        known = ", ".join(port.name for port in graph.outputs)
        raise ReadError(f"The network {spec.name} has no output {spec.output.name!r}; it has {known}.")
    seen = spec.size.fixed or (size[0], size[1])
    found = _plane(outputs[port.name], spec.output, seen)
    if found is None:
        shape = " × ".join(map(str, outputs[port.name].shape))
        raise ReadError(
            f"The output {port.name} of {spec.name} has {shape} numbers for images of {seen[0]}×{seen[1]}, "
            f"which does not fit channel {spec.output.channel} at a resolution of {spec.output.resolution:g}."
        )
    factor = spec.output.scale * (seen[1] if spec.output.unit == "width" else 1)
    factor *= (-1 if spec.output.sign == "negative" else 1) * size[1] / seen[1]
    disparity = resize_planes(
        np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0)[None], (size[0], size[1])
    )[0]
    positive: FloatMap = np.maximum(disparity * np.float32(factor), 0)
    return positive


def _plane(values: NDArray[Any], output: OutputSpec, size: tuple[int, int]) -> FloatMap | None:
    """Return the channel of a map of any layout; None if it has no such channel or another size."""
    sides = tuple(round(side * output.resolution) for side in size)
    for axis in range(values.ndim - 1):
        if values.shape[axis : axis + 2] == sides:
            planes = np.moveaxis(values, (axis, axis + 1), (-2, -1)).reshape(-1, *sides)
            return planes[output.channel].astype(np.float32) if output.channel < len(planes) else None
    return None


def similarity(left: FloatMap, right: FloatMap, disparity: FloatMap) -> FloatMap:
    """Return the structural similarity, 0 … 1, of the left image and the right one moved by the disparity."""
    gray, other = _gray(left), _gray(right)
    columns = np.arange(gray.shape[1], dtype=np.float32) - disparity
    moved = _sample(other, columns)
    first, second = (cv2.blur(each, _WINDOW) for each in (gray, moved))
    variance, other_variance = cv2.blur(gray**2, _WINDOW) - first**2, cv2.blur(moved**2, _WINDOW) - second**2
    covariance = cv2.blur(gray * moved, _WINDOW) - first * second
    means, spreads = _STABILITY
    alike = (2 * first * second + means) * (2 * covariance + spreads)
    alike /= (first**2 + second**2 + means) * (variance + other_variance + spreads)
    inside = columns > -0.5
    return np.where(inside, np.clip(alike, 0, 1), 0).astype(np.float32)


def _sample(image: FloatMap, columns: FloatMap) -> FloatMap:
    """Return the image [H, W] at fractional columns of its rows, linearly; the outermost ones continue."""
    places = np.clip(columns, 0, image.shape[1] - 1)
    before = np.floor(places).astype(np.int64)
    after = np.minimum(before + 1, image.shape[1] - 1)
    share = places - before
    return (
        np.take_along_axis(image, before, axis=1) * (1 - share)
        + np.take_along_axis(image, after, axis=1) * share
    ).astype(np.float32)
