"""Matching of large images in overlapping tiles, which are blended.

A pixel at column x is matched with the columns x - max_disparity … x of the right image, so the first
max_disparity columns of a tile (its lead) cannot be matched and are discarded.  So is a margin next to every
cut, where the network lacks context.  Between the margins, neighboring tiles are blended linearly.

    |  lead  | margin |  blend  |      own      |  blend  | margin |
                                 |  lead  | margin |  blend  |   own …

Tiles begin at multiples of the network's size multiple, so that their pixel grid is that of the whole image.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np

from aanet.errors import AanetError
from aanet.inference.spec import Maps, NetworkSpec
from aanet.typing import FloatMap

MARGIN = 32  # pixels next to a cut that are discarded
BLEND = 64  # pixels over which two tiles are blended
OVERLAP = 2 * MARGIN + BLEND
_LEAST_STRIP = 384  # rows; a lower tile would mostly consist of its overlaps

_SHARE = 0.5  # share of the free memory that a prediction may use


class Tile(NamedTuple):
    """Height and width of a tile."""

    height: int
    width: int


class Span(NamedTuple):
    """The extent of a tile along one side of the image, and the weights of its pixels in the blend."""

    start: int
    stop: int
    weight: FloatMap  # [stop - start]


def tile_for(spec: NetworkSpec, height: int, width: int, available: int) -> Tile | None:
    """Return the largest tile that fits into memory; None if the whole image does.

    The whole image is matched at once if it needs at most half of the free memory.  Otherwise it is cut into
    strips as wide as the image, which need no lead.  Strips are cut as well only if 384 rows do not fit.
    """
    affordable = int(_SHARE * available / bytes_per_pixel(spec, width))
    if height * width <= affordable:
        return None
    rows = max(affordable // width, _LEAST_STRIP)
    columns = max(affordable // rows, _least_width(spec))
    return Tile(min(rows, height), min(columns, width))


def bytes_per_pixel(spec: NetworkSpec, width: int) -> float:
    """Peak memory of a prediction, per pixel of an image of this width."""
    at_peak = spec.bytes_per_pixel * max(spec.max_disparity / 192, 1)
    if spec.correlates:
        # The products of all pairs of pixels of a row in float32, and a copy sorted by disparity.
        at_peak += 8 * width / spec.candidate_step**3
    return at_peak


def match_in_tiles(
    match: Callable[[FloatMap, FloatMap], Maps],
    left: FloatMap,
    right: FloatMap,
    spec: NetworkSpec,
    tile: Tile,
) -> Maps:
    """Match [B, 3, H, W] tile by tile.

    Args:
        match: Computes disparity and confidence [B, h, w] of images of any size.
        left: The left images.
        right: The right images.
        spec: The network that `match` runs.
        tile: Size of the tiles, which is rounded down to a multiple that the network takes.

    Returns:
        Disparity and confidence, [B, H, W].
    """
    batch, _, height, width = left.shape
    tile = _whole(tile, spec, height, width)
    lead = spec.sizes.round_up(spec.max_disparity)
    columns = spans(width, tile.width, spec.sizes.multiple, lead)
    rows = spans(height, tile.height, spec.sizes.multiple, lead=0)
    totals = np.zeros((2, batch, height, width), np.float32)
    weights = np.zeros((height, width), np.float32)
    for row, column in product(rows, columns):
        window = np.s_[..., row.start : row.stop, column.start : column.stop]
        weight = row.weight[:, None] * column.weight
        for total, values in zip(totals, match(left[window], right[window]), strict=True):
            total[window] += weight * values
        weights[window] += weight
    disparity, confidence = totals / weights
    return disparity, confidence


def spans(length: int, size: int, multiple: int, lead: int) -> list[Span]:
    """Cover one side of an image with tiles.

    Args:
        length: Length of the side.
        size: Length of a tile, a multiple of `multiple`.
        multiple: Tiles begin at multiples of this.
        lead: Pixels at the beginning of a tile that are discarded, unless the image begins there.
    """
    if length <= size:
        return [Span(0, length, np.ones(length, np.float32))]
    step = (size - lead - OVERLAP) // multiple * multiple
    last = -(-(length - size) // multiple) * multiple
    starts = [*range(0, last, step), last]
    windows = [(start, min(start + size, length)) for start in starts]
    return [
        Span(start, stop, _weight(stop - start, 0 if start == 0 else lead, start > 0, stop < length))
        for start, stop in windows
    ]


def _weight(size: int, lead: int, cut_before: bool, cut_behind: bool) -> FloatMap:
    """1 in the middle, decreasing linearly to 0 at the margin of a cut."""
    places = np.arange(size, dtype=np.float32) + 0.5
    weight = np.ones(size, np.float32)
    if cut_before:
        weight *= np.clip((places - lead - MARGIN) / BLEND, 0, 1)
    if cut_behind:
        weight *= np.clip((size - places - MARGIN) / BLEND, 0, 1)
    return weight


def _least_width(spec: NetworkSpec) -> int:
    return spec.sizes.round_up(spec.max_disparity) + 2 * OVERLAP + spec.sizes.multiple


def _whole(tile: Tile, spec: NetworkSpec, height: int, width: int) -> Tile:
    """Round the tile to a size that the network takes, or raise an error if it is too small."""
    least = Tile(2 * OVERLAP + spec.sizes.multiple, _least_width(spec))
    if (tile.height < least.height and tile.height < height) or (
        tile.width < least.width and tile.width < width
    ):
        raise AanetError(
            f"A tile for {spec.name} with {spec.max_disparity} disparities must have at least "
            f"{least.height}×{least.width} pixels (height × width): tiles overlap by {OVERLAP} pixels, "
            f"and by the maximum disparity to the left; got {tile.height}×{tile.width}."
        )
    return Tile(_whole_side(tile.height, height, spec), _whole_side(tile.width, width, spec))


def _whole_side(side: int, length: int, spec: NetworkSpec) -> int:
    multiple = spec.sizes.multiple
    return spec.sizes.round_up(length) if side >= length else side // multiple * multiple
