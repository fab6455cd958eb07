from __future__ import annotations

import numpy as np

from aanet import viz


def test_the_nearer_surface_hides_the_farther_one() -> None:
    y, x = np.mgrid[-1:1:60j, -1:1:60j]
    depth = np.where((np.abs(x) < 0.4) & (np.abs(y) < 0.4), 1.0, 3.0)
    points = np.dstack([x * depth, y * depth, depth])
    colors = np.where((depth == 1)[..., None], (255, 0, 0), (0, 0, 255)).astype(np.uint8)
    points[0, 0] = np.nan
    picture = viz.render_points(points, colors, 200, 200, yaw=0, pitch=0).astype(int)
    assert picture[100, 100].tolist() == [255, 0, 0]
    assert picture[100, 20].tolist() == [0, 0, 255]
    # Seen from the right, the near square covers what is behind it to the left; from above, what is below.
    for yaw, pitch, axis, side in ((20, 0, 1, -1), (-20, 0, 1, 1), (0, 20, 0, 1)):
        swung = viz.render_points(points, colors, 200, 200, yaw, pitch).astype(int)
        red, blue = ((swung == color).all(axis=2).nonzero()[axis] for color in ((255, 0, 0), (0, 0, 255)))
        assert np.sign(red.mean() - blue.mean()) == side


def test_nothing_to_render_is_an_empty_page() -> None:
    page = viz.render_points(np.full((4, 4, 3), np.nan), np.zeros((4, 4, 3), np.uint8), 30, 20)
    assert page.shape == (20, 30, 3)
    assert (page == 255).all()
