"""Measuring among the points: a click finds the point that is seen there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from aanet.result import StereoResult
from helpers.chromium import CHROMIUM, until
from helpers.page import match

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]


def drawn(page: Page) -> np.ndarray:
    """The ends of the line, as fractions of the canvas."""
    names = ("x1", "y1", "x2", "y2")
    values = [page.get_attribute("#cloud-line line:last-child", name) for name in names]
    return np.array(values, float).reshape(2, 2)


def test_two_clicks_among_the_points_measure_their_distance(
    page: Page, files: dict[str, Path], expected: StereoResult
) -> None:
    match(page, files)
    page.check("[value=points]", force=True)
    cloud = page.locator("#cloud")
    until(page, lambda: bool(cloud.get_attribute("data-view")))
    box: Any = cloud.bounding_box()
    places = np.array([[0.4, 0.45], [0.6, 0.6]])
    for x, y in places:
        page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])
    pixels = [int(number) for number in re.findall(r"[xy] (\d+)", page.inner_text("#cloud-ruler"))]
    first, second = (pixels[0], pixels[1]), (pixels[2], pixels[3])
    length = expected.distance(first, second)
    assert (
        page.inner_text("#cloud-ruler")
        == f"From x {first[0]}, y {first[1]} to x {second[0]}, y {second[1]}: {length}"
    )
    assert second[0] > first[0]
    assert second[1] > first[1]
    size = np.array([box["width"], box["height"]])
    assert np.abs((drawn(page) - places) * size).max() < 8  # the points that are seen where the clicks were
    before, view = drawn(page), cloud.get_attribute("data-view")
    page.mouse.move(box["x"] + 300, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 420, box["y"] + 230, steps=4)
    page.mouse.up()
    until(page, lambda: cloud.get_attribute("data-view") != view)
    assert page.inner_text("#cloud-ruler").endswith(str(length))  # a drag is not a click
    assert np.abs(drawn(page) - before).max() > 0.01  # the line turns with the points
    page.keyboard.press("Enter")
    middle = [int(number) for number in re.findall(r"[xy] (\d+)", page.inner_text("#cloud-ruler"))]
    assert len(middle) == 2
    assert np.abs((drawn(page) - 0.5) * size).max() < 8
    page.check("[value=disparity]", force=True)
    assert page.inner_text("#ruler") == f"From x {middle[0]}, y {middle[1]} to …"  # one ruler for both views
    page.check("[value=points]", force=True)
    page.focus("#cloud")
    page.keyboard.press("Escape")
    assert page.is_hidden("#cloud-line")
