"""The page in a real Chromium: what a person does, and that the browser asks nobody else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from aanet.io.disparity import read_disparity
from aanet.io.images import decode_image, encode_image
from aanet.io.points import read_ply
from aanet.result import StereoResult
from helpers.calibrations import RAW, stereo_entries, storage
from helpers.chromium import CHROMIUM, picture, until
from helpers.page import download, match, open_page
from helpers.server import Server

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra dev)")
if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]


def test_upload_and_read_the_value_under_the_pointer(
    page: Page, files: dict[str, Path], expected: StereoResult
) -> None:
    match(page, files)
    box = page.locator("#under").bounding_box()
    assert box is not None
    x, y = 150, 40
    page.mouse.move(box["x"] + box["width"] * (x + 0.5) / 200, box["y"] + box["height"] * (y + 0.5) / 120)
    text = page.inner_text("#readout")
    assert f"x {x}, y {y}" in text
    assert f"{expected.disparity[y, x]:.2f} px" in text
    assert f"{expected.depth()[y, x]:.3f} m" in text
    assert f"confidence {expected.confidence[y, x]:.2f}" in text
    page.focus("#stage")
    page.keyboard.press("Shift+ArrowLeft")
    assert f"x {x - 10}, y {y} · {expected.disparity[y, x - 10]:.2f} px" in page.inner_text("#readout")


def test_the_ruler_measures_between_two_clicks(
    page: Page, files: dict[str, Path], expected: StereoResult
) -> None:
    match(page, files)
    assert "Click two points" in page.inner_text("#ruler")
    box = page.locator("#under").bounding_box()
    assert box is not None

    def click(x: int, y: int) -> None:
        page.mouse.click(
            box["x"] + box["width"] * (x + 0.5) / 200, box["y"] + box["height"] * (y + 0.5) / 120
        )

    click(150, 40)
    assert page.inner_text("#ruler") == "From x 150, y 40 to …"
    click(60, 90)
    length = expected.distance((150, 40), (60, 90))
    assert page.inner_text("#ruler") == f"From x 150, y 40 to x 60, y 90: {length}"
    assert page.is_visible("#ruler-line")
    ends = [page.get_attribute("#ruler-line line:last-child", name) for name in ("x1", "y1", "x2", "y2")]
    assert ends == ["150.5", "40.5", "60.5", "90.5"]
    page.focus("#stage")  # the keyboard begins anew, at the cursor
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    for _ in range(3):
        page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("Enter")
    length = expected.distance((59, 90), (59, 60))
    assert page.inner_text("#ruler") == f"From x 59, y 90 to x 59, y 60: {length}"
    page.keyboard.press("Escape")
    assert "Click two points" in page.inner_text("#ruler")
    assert page.is_hidden("#ruler-line")


def test_every_view_shows_what_was_computed(
    page: Page, files: dict[str, Path], expected: StereoResult
) -> None:
    from aanet.viz import colorize_disparity

    match(page, files)
    low, high = np.percentile(expected.disparity, [1, 99])
    shown = picture(page, "under")
    assert np.abs(shown - colorize_disparity(expected.disparity, low, high).astype(int)).mean() < 2
    page.check("[value=confidence]", force=True)
    assert np.abs(picture(page, "under")[..., 0] - expected.confidence * 255).max() <= 1
    page.check("[value=check]", force=True)
    magenta = (picture(page, "under") == (232, 62, 208)).all(axis=2)
    assert np.array_equal(magenta, expected.occlusion)
    page.select_option("#against", "left")
    assert np.array_equal(picture(page, "over"), expected.left)
    before = page.evaluate("document.getElementById('over').style.clipPath")
    page.focus("#wipe")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.getElementById('over').style.clipPath") != before


def test_turn_the_cloud_and_download_what_it_shows(
    page: Page, files: dict[str, Path], expected: StereoResult, tmp_path: Path
) -> None:
    match(page, files)
    page.check("[value=points]", force=True)
    cloud = page.locator("#cloud")
    until(page, lambda: bool(cloud.get_attribute("data-view")))
    first, view = pixels(cloud), cloud.get_attribute("data-view")
    assert len(np.unique(first.reshape(-1, 3), axis=0)) > 500  # points in many colors, not an empty canvas
    box = cloud.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 300, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 420, box["y"] + 230, steps=4)
    page.mouse.up()
    until(page, lambda: cloud.get_attribute("data-view") != view)
    assert np.abs(pixels(cloud).astype(int) - first).mean() > 3
    page.keyboard.press("0")
    until(page, lambda: cloud.get_attribute("data-view") == view)
    page.uncheck("#edges")
    slide(page, "sure", "0.6")
    kept = download(page, "ply", tmp_path)
    points, colors = read_ply(kept)
    assert f"{len(points):,} of" in page.inner_text("#count")
    camera = expected.camera
    assert camera is not None
    x = np.rint(points[:, 0] * camera.fx / points[:, 2] + camera.cx).astype(int)
    y = np.rint(points[:, 1] * camera.fx / points[:, 2] + camera.cy).astype(int)
    assert len({*zip(x.tolist(), y.tolist(), strict=True)}) == len(points)
    assert np.allclose(points, expected.points()[y, x], atol=1e-5)
    assert np.array_equal(colors, expected.left[y, x])
    sure = expected.confidence >= np.float32(0.6)
    assert sure[y, x].all()
    assert len(points) > 0.95 * sure.sum()  # the ends of the range leave a few out


def pixels(locator: Any) -> np.ndarray:
    return decode_image(locator.screenshot(), "screenshot")[..., :3]


def slide(page: Page, name: str, value: str) -> None:
    page.locator(f"#{name}").fill(value)


@pytest.mark.parametrize("kind", ["png16", "pfm", "npy"])
def test_downloads_read_back(
    page: Page, files: dict[str, Path], expected: StereoResult, tmp_path: Path, kind: str
) -> None:
    match(page, files)
    read = read_disparity(download(page, kind, tmp_path))
    assert np.allclose(read, expected.disparity, rtol=0, atol=1 / 256 if kind == "png16" else 0)


def test_warnings_and_errors_are_seen(
    page: Page, files: dict[str, Path], small_pair: dict[str, bytes], tmp_path: Path
) -> None:
    match(page, {"left": files["left"], "right": files["left"]}, "left", "right")
    assert "same" in page.inner_text("#warnings")
    assert page.get_attribute("#warnings", "role") == "alert"
    other = tmp_path / "other.png"
    right = decode_image(small_pair["right"], "right")
    other.write_bytes(encode_image(right[:, :-10], ".png"))
    page.set_input_files("#right", other)
    page.click("#go")
    page.wait_for_selector("#error:not([hidden])")
    assert "must have the same size" in page.inner_text("#error")
    assert page.is_enabled("#go")


def test_a_calibration_in_two_files_and_another_unit(
    page: Page, files: dict[str, Path], tmp_path: Path
) -> None:
    """The message names what is on the page, and the options open; then the pair is matched."""
    entries = stereo_entries(RAW, 1000.0)
    intrinsics, extrinsics = tmp_path / "intrinsics.yml", tmp_path / "extrinsics.yml"
    intrinsics.write_bytes(storage({key: entries.pop(key) for key in ("M1", "D1", "M2", "D2")}))
    extrinsics.write_bytes(storage(entries))
    for part, file in (("left", files["left"]), ("right", files["right"]), ("calib", intrinsics)):
        page.set_input_files(f"#{part}", file)
    page.click("#go")
    page.wait_for_selector("#error:not([hidden])")
    assert "“Second file” in the calibration options" in page.inner_text("#error")
    assert page.is_visible("#unit")
    page.set_input_files("#calib_right", extrinsics)
    page.click("#go")
    until(page, lambda: "“Unit of length” in the calibration options" in page.inner_text("#error"))
    page.select_option("#unit", "mm")
    page.click("#go")
    page.wait_for_selector("#shown:not([hidden])", timeout=120_000)
    assert "baseline 11.0 cm" in page.inner_text("#facts")
    page.click("#forget-calib")
    assert page.input_value("#unit") == ""
    assert "extrinsics.yml" not in page.inner_text("#calib-options")


def test_a_server_that_does_not_answer_is_named_and_found_again(page: Page, files: dict[str, Path]) -> None:
    for part in ("left", "right"):
        page.set_input_files(f"#{part}", files[part])
    page.context.set_offline(True)
    page.click("#go")
    page.wait_for_selector("#error:not([hidden])")
    assert "server does not answer" in page.inner_text("#error")
    page.context.set_offline(False)
    page.wait_for_selector("#error", state="hidden")
    match(page, files)


def test_everything_has_a_name_and_the_keyboard_is_enough(page: Page) -> None:
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("input, select, button, canvas[tabindex]")].filter((each) =>
            !(each.labels && each.labels.length) && !each.ariaLabel && !each.textContent.trim()
        ).map((each) => each.outerHTML)"""
    )
    assert nameless == []
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    for _ in range(20):
        if page.evaluate("document.activeElement.id") == "example":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    until(page, lambda: page.evaluate("document.activeElement.id") == "go" and page.is_enabled("#go"))
    page.select_option("#scale", "0.25")
    page.focus("#go")
    page.keyboard.press("Enter")
    page.wait_for_selector("#shown:not([hidden])", timeout=120_000)
    assert page.evaluate("document.activeElement.id") == "result"


def test_a_network_is_compared_with_sgbm(
    browser: Browser,
    files: dict[str, Path],
    expected: StereoResult,
    start: Callable[..., Server],
    tmp_path: Path,
) -> None:
    import torch

    from aanet.models import zoo
    from aanet.models.weights import checkpoint

    torch.manual_seed(0)
    checkpoint.save(
        zoo.build("stereonet_aa", initialization="matching").eval(), tmp_path / "mine.safetensors"
    )
    network = str(tmp_path / "mine.safetensors")
    server = start("--model", "sgbm", "--model", network, "--token", "s3 cret", cache=tmp_path / "cache")
    server.url += "#token=s3%20cret"
    for page in open_page(browser, server.url):
        assert "token" not in page.url  # it would stay in the history of the browser
        page.select_option("#model", "mine")
        page.uncheck("#check")
        match(page, files)
        assert page.is_disabled("[value=check]")
        page.select_option("#against", "sgbm")
        page.wait_for_selector("#over:not([hidden])", timeout=120_000)
        page.focus("#stage")
        page.keyboard.press("ArrowLeft")
        x, y = 99, 60
        text = page.inner_text("#readout")
        assert f"SGBM {expected.disparity[y, x]:.2f} px" in text
        assert page.inner_text("#tag-right") == "Disparity, mine"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_is_readable_in_both_themes_and_fits_a_phone(
    browser: Browser, local_server: Server, files: dict[str, Path], theme: str
) -> None:
    for page in open_page(browser, local_server.url, color_scheme=theme):
        page.set_viewport_size({"width": 390, "height": 844})
        match(page, files)
        for view in ("disparity", "points"):
            page.check(f"[value={view}]", force=True)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
        for selector in ("#status", "#readout", "#ruler", "header a", "#go", "#count", "#facts dt"):
            assert contrast(page, selector) >= 4.5, selector


def contrast(page: Page, selector: str) -> float:
    """WCAG's ratio between the color of a text and what lies behind it."""
    script = """(selector) => {
        const text = document.querySelector(selector);
        let behind = text;
        while (getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
        return [getComputedStyle(text).color, getComputedStyle(behind).backgroundColor]; }"""
    lightness = []
    for color in page.evaluate(script, selector):
        rgb = np.array(re.findall(r"[\d.]+", color)[:3], float) / 255
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        lightness.append(float(linear @ (0.2126, 0.7152, 0.0722)))
    return (max(lightness) + 0.05) / (min(lightness) + 0.05)
