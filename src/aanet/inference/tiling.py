"""Large images in pieces: tiles that see far enough to the left, and blend without a seam.

A pixel at column x is matched with the columns x - max_disparity … x of the right image, so a tile is useless
for as many columns at its left end.  Next to a cut the network lacks the surroundings it is used to, so a
margin is thrown away there; between two margins the neighbors blend linearly.

    |  lead  | margin |  blend  |      own      |  blend  | margin |
                                 |  lead  | margin |  blend  |   own …

Windows begin at multiples of what the network's grid needs, so that a tile has the grid of the whole image.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np

from aanet.errors import AanetError
from aanet.inference.padding import padded_size
from aanet.inference.spec import Maps, NetworkFacts
from aanet.typing import FloatMap

MARGIN = 32  # pixels next to a cut that are thrown away
BLEND = 64  # pixels over which two tiles blend
OVERLAP = 2 * MARGIN + BLEND
_LEAST_STRIP = 384  # rows: a lower tile would mostly consist of its overlaps

# Bytes per pixel that a prediction takes at its peak with 192 disparities, as measured with OpenVINO (GA-Net:
# with torch, which takes up to half as much again); without what correlation needs for wide images.
_BYTES_PER_PIXEL = {
    "sgbm": 150,
    "aanet_plus": 2400,
    "stereonet_aa": 500,
    "gcnet_aa": 1300,
    "psmnet_aa": 1000,
    "ganet_aa": 1100,
    "stereonet": 500,
    "gcnet": 17000,
    "psmnet": 4100,
    "ganet": 16000,
}
_BYTES_PER_PIXEL_OF_AANET = 800  # and of its ablations
_NO_CORRELATION = frozenset({"sgbm", "stereonet", "gcnet", "psmnet", "ganet"})
_SHARE = 0.5  # of the free memory that a prediction may take


class Tile(NamedTuple):
    """Height and width of what the network sees at once."""

    height: int
    width: int


class Span(NamedTuple):
    """One window along one side of the image, and how much each of its pixels counts in the blend."""

    start: int
    stop: int
    weight: FloatMap  # [stop - start]


def tile_for(facts: NetworkFacts, height: int, width: int, available: int) -> Tile | None:
    """Return the tile that fits the memory; None if the whole image does.

    The whole image is taken if it needs at most half of the free memory.  Otherwise it is cut into strips as
    wide as the image, which waste nothing on disparities; only where a strip of 384 rows does not fit, they
    are cut as well.
    """
    affordable = int(_SHARE * available / bytes_per_pixel(facts, width))
    if height * width <= affordable:
        return None
    rows = max(affordable // width, _LEAST_STRIP)
    columns = max(affordable // rows, _least_width(facts))
    return Tile(min(rows, height), min(columns, width))


def bytes_per_pixel(facts: NetworkFacts, width: int) -> float:
    """What a prediction takes at its peak, per pixel of an image of that width."""
    measured = _BYTES_PER_PIXEL.get(facts.name, _BYTES_PER_PIXEL_OF_AANET)
    at_peak = measured * max(facts.max_disparity / 192, 1)
    if facts.name not in _NO_CORRELATION:
        # Every pixel of a row times every other one, in float32 and once more to sort it by disparity.
        at_peak += 8 * width / facts.candidate_step**3
    return at_peak


def match_in_tiles(
    match: Callable[[FloatMap, FloatMap], Maps],
    left: FloatMap,
    right: FloatMap,
    facts: NetworkFacts,
    tile: Tile,
) -> Maps:
    """Match [B, 3, H, W] tile by tile.

    Args:
        match: Disparity and confidence [B, h, w] of a piece of any size.
        left: The left images.
        right: The right images.
        facts: Of the network behind `match`.
        tile: What it sees at once; a little less where its grid demands it.

    Returns:
        Disparity and confidence, [B, H, W].
    """
    batch, _, height, width = left.shape
    tile = _whole(tile, facts, height, width)
    lead = padded_size(facts.max_disparity, facts)
    columns = spans(width, tile.width, facts.size_multiple, lead)
    rows = spans(height, tile.height, facts.size_multiple, lead=0)
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
    """Cover `length` pixels with windows of at most `size`, each beginning at a multiple of `multiple`.

    Args:
        length: Of the image's side.
        size: Of a window, a multiple of `multiple`.
        multiple: What windows begin at.
        lead: Pixels at the beginning of a window that are good for nothing unless the image begins there.
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
    """1 in the middle, falling linearly to 0 before the margin of a cut."""
    places = np.arange(size, dtype=np.float32) + 0.5
    weight = np.ones(size, np.float32)
    if cut_before:
        weight *= np.clip((places - lead - MARGIN) / BLEND, 0, 1)
    if cut_behind:
        weight *= np.clip((size - places - MARGIN) / BLEND, 0, 1)
    return weight


def _least_width(facts: NetworkFacts) -> int:
    return padded_size(facts.max_disparity, facts) + 2 * OVERLAP + facts.size_multiple


def _whole(tile: Tile, facts: NetworkFacts, height: int, width: int) -> Tile:
    """The tile in whole multiples of the network's grid; a plain error if nothing of it would remain."""
    least = Tile(2 * OVERLAP + facts.size_multiple, _least_width(facts))
    if (tile.height < least.height and tile.height < height) or (
        tile.width < least.width and tile.width < width
    ):
        raise AanetError(
            f"A tile for {facts.name} with {facts.max_disparity} disparities must have at least "
            f"{least.height}×{least.width} pixels (height × width): tiles overlap by {OVERLAP} pixels "
            f"and widen to the left by the maximum disparity; got {tile.height}×{tile.width}."
        )
    return Tile(_whole_side(tile.height, height, facts), _whole_side(tile.width, width, facts))


def _whole_side(side: int, length: int, facts: NetworkFacts) -> int:
    multiple = facts.size_multiple
    return padded_size(length, facts) if side >= length else side // multiple * multiple
