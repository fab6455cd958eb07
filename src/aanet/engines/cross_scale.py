"""Cross-scale cost aggregation in closed form (Zhang et al., CVPR 2014), which AANet's CSA approximates.

The appendix of the AANet paper derives it: costs are aggregated within each scale of an image pyramid
(eq. 14), and a penalty on differences between the scales (eq. 15) makes the final cost of a pixel a fixed
linear combination of its aggregated costs at all scales (eq. 17).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.errors import InputError
from aanet.inference.consistency import Matched, complete
from aanet.typing import FloatMap, Image

SCALES = 5
REGULARIZATION = 0.3  # λ of eq. 15
_CENSUS_ROWS, _CENSUS_COLUMNS = 3, 4  # half sizes of the window: 7×9 pixels, 62 comparisons
_GRADIENT_SHARE = 0.2  # of the gradients in the matching cost; the rest is census
_GRADIENT_LIMIT = 12.0  # gray levels per pixel above which gradients do not differ more
_FILTER_RADIUS = 5
_FILTER_SMOOTHNESS = 1e-3  # of the guided filter, for gray values in 0 … 1
_BITS = np.array([value.bit_count() for value in range(1 << 16)], dtype=np.uint8)

Volume = NDArray[np.float32]  # [D, H, W], low where pixels match


def combination_matrix(scales: int = SCALES, regularization: float = REGULARIZATION) -> NDArray[np.float64]:
    """Return P of eq. 17, [S, S]: the costs of all scales are P times the independently aggregated costs.

    Setting the derivative of eq. 15 to zero gives (1 + λ n_s) z_s − λ Σ z_k = C̃_s, where k runs over the n_s
    neighbors of scale s (the weights w sum to one).  So P is the inverse of I + λ L with the Laplacian matrix
    L of a chain of S nodes.
    """
    steps = np.diff(np.eye(scales), axis=0)  # [S − 1, S]: z_s − z_(s−1)
    return np.asarray(np.linalg.inv(np.eye(scales) + regularization * steps.T @ steps), np.float64)


class CrossScaleMatcher:
    """Census and gradients, guided filters at five scales, their combination, and the best candidate."""

    def __init__(self, max_disparity: int = 192, regularization: float = REGULARIZATION) -> None:
        if max_disparity < 1:
            raise InputError(f"The maximum disparity must be at least 1 pixel; got {max_disparity}.")
        if not 0 <= regularization < np.inf:
            raise InputError(f"The regularization must be 0 or a positive number; got {regularization}.")
        self.max_disparity = max_disparity
        self.weights = combination_matrix(regularization=regularization)[0]  # of the finest scale

    def __call__(self, left: Image, right: Image) -> Matched:
        """Match a pair of RGB images [H, W, 3]; holes are filled as those of SGBM."""
        volume = self.volume(left, right)
        disparity = best_candidate(volume)
        return complete(disparity, best_candidate(seen_from_right(volume)), self.max_disparity)

    def volume(self, left: Image, right: Image) -> Volume:
        """Return the combined costs of the finest scale, [D, H, W] (eq. 17)."""
        gray = GrayPair(*(_as_uint8(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)) for image in (left, right)))
        finest, *coarse = (
            aggregated_costs(*pair, candidates) for pair, candidates in pyramid(gray, self.max_disparity)
        )
        height, width = left.shape[:2]
        weights = [float(weight) for weight in self.weights]
        # Scales for which the image is too small repeat the coarsest one.
        weights[len(coarse)] += sum(weights[len(coarse) + 1 :])

        def combine(candidate: int) -> None:
            costs = finest[candidate]
            costs *= np.float32(weights[0])
            for scale, volume in enumerate(coarse, 1):
                costs += np.float32(weights[scale]) * _at(volume, candidate / 2**scale, costs.shape)

        for_each(combine, len(finest))
        return finest[:, :height, :width]


class GrayPair(NamedTuple):
    """A pair of one scale of the pyramid, gray, uint8 [H, W]."""

    left: NDArray[np.uint8]
    right: NDArray[np.uint8]


def pyramid(gray: GrayPair, max_disparity: int) -> Iterator[tuple[GrayPair, int]]:
    """Yield the pair and the number of its candidates at every scale, finest first; each half the size.

    Images are padded at the right and bottom, so that every coarse pixel is the mean of 2×2 finer ones.
    """
    height, width = gray.left.shape
    multiple = 2 ** (SCALES - 1)
    border = (0, -height % multiple, 0, -width % multiple)
    pair = GrayPair(*(_as_uint8(cv2.copyMakeBorder(each, *border, cv2.BORDER_REPLICATE)) for each in gray))
    for _ in range(SCALES):
        yield pair, max_disparity
        if min(pair.left.shape) < 4 * _CENSUS_COLUMNS:
            return
        half = (pair.left.shape[1] // 2, pair.left.shape[0] // 2)
        pair = GrayPair(*(_as_uint8(cv2.resize(each, half, interpolation=cv2.INTER_AREA)) for each in pair))
        max_disparity = -(-max_disparity // 2) + 1  # so that every finer candidate lies between two


def aggregated_costs(left: NDArray[np.uint8], right: NDArray[np.uint8], candidates: int) -> Volume:
    """Return matching costs in 0 … 1, averaged within surfaces by a guided filter (eq. 11), [D, H, W]."""
    codes = census(left), census(right)
    slopes = [cv2.Sobel(image, cv2.CV_32F, 1, 0, scale=1 / 8) for image in (left, right)]
    smooth = guided_filter(left.astype(np.float32) / np.float32(255))
    volume = np.empty((candidates, *left.shape), dtype=np.float32)

    def fill(candidate: int) -> None:
        shift = min(candidate, left.shape[1] - 1)
        bits = hamming(codes[0][:, shift:], codes[1][:, : left.shape[1] - shift])
        slope = np.abs(slopes[0][:, shift:] - slopes[1][:, : left.shape[1] - shift])
        cost = (1 - _GRADIENT_SHARE) * bits + _GRADIENT_SHARE * np.minimum(slope / _GRADIENT_LIMIT, 1)
        # Pixels whose match is outside the right image get the cost of the first one inside.
        volume[candidate] = smooth(np.pad(cost.astype(np.float32), ((0, 0), (shift, 0)), mode="edge"))

    for_each(fill, candidates)
    return volume


def census(gray: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Compare every pixel with those around it: one bit each, set where the neighbor is darker, [H, W]."""
    rows, columns = _CENSUS_ROWS, _CENSUS_COLUMNS
    padded = np.pad(gray, ((rows, rows), (columns, columns)), mode="edge")
    height, width = gray.shape
    code = np.zeros(gray.shape, dtype=np.uint64)
    for row in range(2 * rows + 1):
        for column in range(2 * columns + 1):
            if (row, column) != (rows, columns):
                darker = padded[row : row + height, column : column + width] < gray
                code = (code << np.uint64(1)) | darker
    return code


def hamming(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> FloatMap:
    """Return the share of bits in which two maps of census codes differ, [H, W]."""
    words = (one ^ other).view(np.uint16).reshape(*one.shape, 4)
    bits = (2 * _CENSUS_ROWS + 1) * (2 * _CENSUS_COLUMNS + 1) - 1
    share: FloatMap = _BITS[words].sum(axis=-1, dtype=np.float32) / np.float32(bits)
    return share


def guided_filter(guide: FloatMap) -> Callable[[FloatMap], FloatMap]:
    """Return the guided filter (He et al., PAMI 2013) of a gray image [H, W] in 0 … 1.

    It averages a map within a window, but not across edges of the guide: its weights are the w of eq. 10.
    """
    size = 2 * _FILTER_RADIUS + 1

    def mean(values: FloatMap) -> FloatMap:
        return np.asarray(
            cv2.boxFilter(values, -1, (size, size), borderType=cv2.BORDER_REFLECT), dtype=np.float32
        )

    mean_guide = mean(guide)
    variance = mean(guide * guide) - mean_guide * mean_guide + np.float32(_FILTER_SMOOTHNESS)

    def smooth(values: FloatMap) -> FloatMap:
        mean_values = mean(values)
        slope: FloatMap = np.divide(mean(guide * values) - mean_guide * mean_values, variance)
        smoothed: FloatMap = mean(slope) * guide + mean(mean_values - slope * mean_guide)
        return smoothed

    return smooth


def best_candidate(volume: Volume) -> FloatMap:
    """Return the candidate with the lowest cost, refined by a parabola through its neighbors, [H, W]."""
    best = volume.argmin(axis=0)
    last = max(len(volume) - 1, 0)
    before, at, after = (
        np.take_along_axis(volume, np.clip(best + step, 0, last)[None], axis=0)[0] for step in (-1, 0, 1)
    )
    curvature = before - 2 * at + after
    inside = (best > 0) & (best < last) & (curvature > 1e-6)
    offset = np.where(inside, (before - after) / (2 * np.where(inside, curvature, 1)), 0)
    refined: FloatMap = (best + offset).astype(np.float32)
    return refined


def seen_from_right(volume: Volume) -> Volume:
    """Return the costs on the grid of the right image: a point at x there is at x + d in the left image.

    Candidates whose match is outside the left image get the cost of the last one inside.
    """
    moved = np.empty_like(volume)
    for candidate, costs in enumerate(volume):
        shift = min(candidate, costs.shape[1] - 1)
        moved[candidate] = np.pad(costs[:, shift:], ((0, 0), (0, shift)), mode="edge")
    return moved


def for_each(action: Callable[[int], None], count: int) -> None:
    """Call `action` with 0 … count − 1, on all cores: NumPy and OpenCV do not hold the interpreter lock."""
    with ThreadPoolExecutor(cv2.getNumThreads()) as pool:
        for _ in pool.map(action, range(count)):
            pass


def _as_uint8(image: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Give an image of OpenCV, whose type is wider, its type."""
    return np.asarray(image, dtype=np.uint8)


def _at(volume: Volume, candidate: float, shape: tuple[int, ...]) -> FloatMap:
    """The costs of a coarser scale at a fractional candidate, at the size of the finest scale."""
    lower = min(int(candidate), len(volume) - 1)
    upper = min(lower + 1, len(volume) - 1)
    share = np.float32(candidate - lower)
    costs = volume[lower] * (1 - share) + volume[upper] * share
    resized = cv2.resize(costs, (shape[1], shape[0]), interpolation=cv2.INTER_LINEAR)
    return np.asarray(resized, dtype=np.float32)
