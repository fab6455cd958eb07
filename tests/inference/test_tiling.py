"""Tiles must not be seen: no garbage from their cut ends, no step where they meet."""

from __future__ import annotations

import numpy as np
import pytest

from aanet.errors import AanetError
from aanet.inference.size_rule import SizeRule
from aanet.inference.spec import NetworkSpec
from aanet.inference.tiling import (
    BLEND,
    MARGIN,
    OVERLAP,
    Tile,
    bytes_per_pixel,
    match_in_tiles,
    spans,
    tile_for,
)
from aanet.matcher import StereoMatcher
from helpers.fake_engine import FakeEngine
from helpers.matching_network import matching_network, plane, textured_scene

SPEC = NetworkSpec("aanet", 48, 800, True, candidate_step=3, sizes=SizeRule(12, 12))


def coordinates(height: int, width: int) -> np.ndarray:
    """An image whose first two channels say where a pixel is."""
    rows, columns = np.indices((height, width), dtype=np.float32)
    return np.stack([rows, columns, rows])[None]


def surface_with_cuts(height: int, width: int, reach: int) -> FakeEngine:
    """An engine of a smooth map that fails where a real one does: near cuts, and short of candidates."""

    def predict(left: np.ndarray) -> np.ndarray:
        rows, columns = left[:, 0], left[:, 1]
        assert rows[0, 0, 0] % SPEC.sizes.multiple == 0
        assert columns[0, 0, 0] % SPEC.sizes.multiple == 0
        broken = np.zeros(rows.shape, bool)
        first, last = columns[:, :, :1], columns[:, :, -1:]
        broken |= (first > 0) & (columns < first + reach + MARGIN)
        broken |= (last < width - 1) & (columns > last - MARGIN)
        top, bottom = rows[:, :1], rows[:, -1:]
        broken |= (top > 0) & (rows < top + MARGIN)
        broken |= (bottom < height - 1) & (rows > bottom - MARGIN)
        return np.where(broken, np.float32(1e6), 20 + 0.01 * columns + 0.02 * rows)

    return FakeEngine(predict)


@pytest.mark.parametrize(("height", "width", "tile"), [(300, 1000, (300, 400)), (701, 533, (280, 400))])
def test_pixels_near_cuts_and_without_all_candidates_do_not_count(height, width, tile):
    image = coordinates(height, width)
    surface = surface_with_cuts(height, width, SPEC.max_disparity)
    disparity, confidence = match_in_tiles(surface, image, image, SPEC, Tile(*tile))
    rows, columns = np.indices((height, width))
    np.testing.assert_allclose(disparity[0], 20 + 0.01 * columns + 0.02 * rows, atol=1e-4)
    np.testing.assert_allclose(confidence[0], rows, rtol=1e-5)  # the fake's confidence is the first channel
    assert len(surface.shapes) > 2
    assert all(rows <= tile[0] + 11 and columns <= tile[1] for *_, rows, columns in surface.shapes)


@pytest.mark.parametrize("length", [401, 500, 777, 1000, 2400])
def test_spans_cover_every_pixel_with_a_weight(length):
    total = np.zeros(length)
    for span in spans(length, size=396, multiple=12, lead=48):
        assert span.start % 12 == 0
        total[span.start : span.stop] += span.weight
    assert total.min() > 0


def test_a_tile_differs_from_its_neighbor_without_a_visible_step():
    """Two tiles that disagree by 1 px must meet in a slope, not in a step."""

    disagreeing = FakeEngine(lambda left: np.float32(left[0, 1, 0, 0] > 0))
    image = coordinates(96, 600)
    disparity, _ = match_in_tiles(disagreeing, image, image, SPEC, Tile(96, 400))
    assert disparity.min() == 0
    assert disparity.max() == 1
    assert np.abs(np.diff(disparity[0], axis=1)).max() <= 1.5 / BLEND


def ramp(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """A textured surface whose disparity grows with the row by steps that the network can tell: 4 px."""
    scene = textured_scene(height, width + 40)
    shifts = 4 * (np.arange(height) * 4 // height + 1)
    right = np.stack([scene[row, shift : shift + width] for row, shift in enumerate(shifts)])
    return scene[:, :width], right


@pytest.mark.parametrize("surface", [lambda *size: plane(*size, 8), ramp], ids=["plane", "ramp"])
@pytest.mark.parametrize(
    ("size", "tile"), [((64, 560), (64, 300)), ((460, 96), (264, 96))], ids=["columns", "rows"]
)
def test_a_network_in_tiles_has_no_step_at_a_seam(surface, size, tile):
    pair = surface(*size)
    matcher = StereoMatcher(matching_network(24), engine="torch")
    whole = matcher(*pair, tile=None, inspect=False)
    tiled = matcher(*pair, tile=tile, inspect=False)
    assert np.median(whole.disparity) == pytest.approx(8, abs=2)
    difference = tiled.disparity - whole.disparity
    assert difference.any()  # there were tiles
    for axis in (0, 1):
        assert np.abs(np.diff(difference, axis=axis)).max() < 0.1


def test_a_tile_that_is_all_overlap_is_refused():
    image = coordinates(600, 600)
    with pytest.raises(AanetError, match="at least 268×316 pixels"):
        match_in_tiles(FakeEngine(), image, image, SPEC, Tile(200, 600))


def test_memory_decides_about_tiles():
    pixels = 2000 * 3000
    enough = int(2 * bytes_per_pixel(SPEC, 3000) * pixels) + 1
    assert tile_for(SPEC, 2000, 3000, enough) is None
    strips = tile_for(SPEC, 2000, 3000, enough // 2 + 1)
    assert strips == Tile(1000, 3000)
    small = tile_for(SPEC, 2000, 3000, enough // 20)
    assert small.width < 3000
    assert small.height * small.width <= pixels // 20
    # Correlation compares every pixel of a row with every other one.
    assert bytes_per_pixel(SPEC, 6000) > bytes_per_pixel(SPEC, 3000) + 800
    # However little memory there is, a tile must be larger than its overlaps.
    least = tile_for(SPEC, 2000, 3000, 0)
    assert least.height > 2 * OVERLAP
    assert least.width > 2 * OVERLAP + SPEC.max_disparity
