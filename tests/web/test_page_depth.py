"""Depth on the page, with a calibration and without one; and pairs in the wrong order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from aanet.io.depth import read_depth
from aanet.io.images import read_image
from aanet.result import StereoResult
from aanet.viz import colorize_depth
from helpers.chromium import CHROMIUM, picture, until
from helpers.page import download, match

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]


def test_depth_is_shown_and_its_files_read_back(
    page: Page, files: dict[str, Path], expected: StereoResult, tmp_path: Path
) -> None:
    match(page, files)
    assert page.is_hidden("#uncalibrated")
    depth = expected.depth()
    page.check("[value=depth]", force=True)
    camera = expected.camera
    assert camera is not None
    ends = np.percentile(expected.disparity, [99, 1])
    near, far = (camera.fx * camera.baseline_m / (float(end) + camera.doffs) for end in ends)
    colored = colorize_depth(depth, near, far).astype(int)
    assert np.abs(picture(page, "under") - colored).mean() < 2
    millimeters = read_depth(download(page, "depth16", tmp_path))
    assert np.array_equal(np.isnan(millimeters), np.isnan(depth))
    assert np.allclose(millimeters, depth, rtol=0, atol=0.00051, equal_nan=True)
    assert np.allclose(read_depth(download(page, "depthnpy", tmp_path)), depth, rtol=1e-6, equal_nan=True)
    page.check("[value=points]", force=True)  # the colored depth does not depend on what is shown
    painted = read_image(download(page, "depthcolor", tmp_path))[..., :3].astype(int)
    assert np.abs(painted - colored).mean() < 2


def test_without_a_calibration_the_page_says_what_is_missing(page: Page, files: dict[str, Path]) -> None:
    match(page, files, "left", "right")
    assert "Depth and distances in meters need a calibration" in page.inner_text("#uncalibrated")
    metric = page.locator("[data-metric]")
    assert metric.count() == 5
    assert all(each.is_disabled() for each in metric.all())
    page.click("#under")
    assert page.is_hidden("#ruler-line")
    with page.expect_file_chooser() as chooser:
        page.click("#add-calib")
    chooser.value.set_files(files["calib"])
    until(page, lambda: page.evaluate("document.activeElement.id") == "go")
    page.keyboard.press("Enter")
    page.wait_for_selector("#uncalibrated", state="hidden", timeout=120_000)
    assert all(each.is_enabled() for each in metric.all())


def test_a_swapped_pair_is_swapped_and_matched_again(
    page: Page, files: dict[str, Path], expected: StereoResult
) -> None:
    swapped = {"left": files["right"], "right": files["left"]}
    match(page, swapped, "left", "right")
    assert "Left and right are probably swapped" in page.inner_text("#warnings")
    wrong = picture(page, "under")
    page.set_input_files("#left", files["left"])  # what was matched is swapped, not what was chosen since
    page.click("#swap-again")
    page.wait_for_selector("#warnings", state="hidden", timeout=120_000)
    names = [page.get_attribute(f".drop[data-part={side}] img", "alt") for side in ("left", "right")]
    assert names == ["Preview of im0.png", "Preview of im1.png"]
    page.focus("#stage")
    page.keyboard.press("ArrowLeft")
    assert f"x 99, y 60 · {expected.disparity[60, 99]:.2f} px" in page.inner_text("#readout")
    assert np.abs(picture(page, "under") - wrong).mean() > 10


def test_other_warnings_do_not_offer_to_swap(page: Page, files: dict[str, Path]) -> None:
    match(page, {"left": files["left"], "right": files["left"]}, "left", "right")
    assert page.is_visible("#warnings")
    assert page.is_hidden("#swap-again")
