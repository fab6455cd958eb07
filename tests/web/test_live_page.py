"""The page of a live server in a real Chromium, with a video as the camera."""

from __future__ import annotations

import io
import json
import re
import socket
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest

from aanet.data.motorcycle import MOTORCYCLE_CAMERA, motorcycle
from aanet.io.frames import StereoVideo
from aanet.typing import Image
from helpers.chromium import CHROMIUM, is_mistake, picture, until
from helpers.fake_camera import until as happens
from helpers.server import LIVE_COMMAND, Server, start_server
from helpers.videos import write_video

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow
WIDTH, HEIGHT = 240, 160


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A camera that moves over the Motorcycle pair, with both views side by side."""
    sample = motorcycle()

    def crop(image: Image, x: int) -> Image:
        return image[200 : 200 + HEIGHT, x : x + WIDTH]

    frames = [np.hstack([crop(sample.left, x), crop(sample.right, x)]) for x in range(150, 250, 5)]
    folder = tmp_path_factory.mktemp("live")
    camera = MOTORCYCLE_CAMERA.cropped(150, 200, WIDTH, HEIGHT)
    (folder / "camera.json").write_text(camera.to_json())
    return write_video(folder / "both.avi", frames)


@pytest.fixture(scope="module")
def live(video: Path) -> Iterator[Server]:
    calibration = str(video.with_name("camera.json"))
    options = ("--model", "sgbm", "--calib", calibration, "--token", "s3cret", "-o", str(video.parent))
    started = start_server(str(video), *options, command=LIVE_COMMAND)
    yield started
    errors = started.stop()
    assert "Traceback" not in errors, errors


def ask(live: Server, method: str, path: str = "") -> httpx.Response:
    headers = {"Authorization": "Bearer s3cret"}
    url = f"{live.api}/live{path}"
    return httpx.request(method, url, headers=headers, timeout=30, trust_env=False)


def status(live: Server) -> Any:
    return ask(live, "GET").json()


@pytest.fixture
def page(browser: Browser, live: Server) -> Iterator[Page]:
    ask(live, "POST", "?paused=false")
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda message: complaints.append(message.text) if is_mistake(message) else None)
    opened.goto(f"{live.url}#token=s3cret")
    opened.wait_for_selector("#shown:not([hidden])", timeout=120_000)
    yield opened
    context.close()
    assert not complaints


needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")


@needs_chromium
def test_frames_follow_each_other_and_a_paused_one_can_be_read(page: Page, live: Server) -> None:
    assert page.is_hidden("#form")
    first = picture(page, "live-left")
    until(page, lambda: not np.array_equal(picture(page, "live-left"), first))
    until(page, lambda: page.inner_text("#live-fps") != "–" and page.inner_text("#live-latency") != "–")
    page.click("#live-pause")
    until(page, lambda: page.inner_text("#live-pause") == "Continue" and status(live)["paused"])
    page.wait_for_timeout(300)  # the last frame may still be on its way
    arrays = np.load(io.BytesIO(ask(live, "GET", "/result?format=arrays").content))
    depth = np.load(io.BytesIO(ask(live, "GET", "/result?format=depth.npy").content))
    x, y = 130, 70
    box = page.locator("#under").bounding_box()
    assert box is not None
    page.mouse.move(
        box["x"] + box["width"] * (x + 0.5) / WIDTH, box["y"] + box["height"] * (y + 0.5) / HEIGHT
    )
    text = page.inner_text("#readout")
    shown = [float(value) for value in re.findall(r"([\d.]+) (?:px|m)\b", text)]
    assert f"x {x}, y {y}" in text
    assert shown[0] == pytest.approx(arrays["disparity"][y, x], abs=0.01)
    assert shown[1] == pytest.approx(depth[y, x], abs=0.01)
    assert np.abs(picture(page, "live-left") - arrays["left"]).mean() < 6  # a JPEG of it


@needs_chromium
def test_the_color_scale_stays_until_it_is_changed(page: Page, live: Server) -> None:
    from aanet.viz import colorize_depth, colorize_disparity

    ask(live, "POST", "?paused=true")
    until(page, lambda: page.inner_text("#live-pause") == "Continue")
    page.wait_for_timeout(300)
    disparity = np.load(io.BytesIO(ask(live, "GET", "/result?format=disparity.npy").content))
    low, high = status(live)["color_range"]
    assert np.abs(picture(page, "under") - colorize_disparity(disparity, low, high).astype(int)).mean() < 2
    page.fill("#live-low", "10")
    page.fill("#live-high", "40")
    page.keyboard.press("Enter")
    assert np.abs(picture(page, "under") - colorize_disparity(disparity, 10, 40).astype(int)).mean() < 2
    page.check("[value=depth]", force=True)
    assert page.inner_text("#live-unit") == "m"
    camera = MOTORCYCLE_CAMERA.cropped(150, 200, WIDTH, HEIGHT)
    near, far = (float(camera.depth(np.full((HEIGHT, WIDTH), d, np.float32))[0, 0]) for d in (40, 10))
    assert float(page.input_value("#live-low")) == pytest.approx(near, rel=0.01)
    expected = colorize_depth(camera.depth(disparity), near, far)
    assert np.abs(picture(page, "under") - expected.astype(int)).mean() < 2


@needs_chromium
def test_the_cloud_follows_and_stays_where_the_viewer_has_turned_it(page: Page) -> None:
    page.check("[value=points]", force=True)
    cloud = page.locator("#cloud")
    until(page, lambda: bool(cloud.get_attribute("data-view")))
    page.focus("#cloud")
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(200)
    view, first = cloud.get_attribute("data-view"), picture(page, "cloud")
    until(page, lambda: np.abs(picture(page, "cloud") - first).mean() > 1)
    assert cloud.get_attribute("data-view") == view


@needs_chromium
def test_snapshot_and_recording(page: Page, live: Server, video: Path, tmp_path: Path) -> None:
    with page.expect_download() as started:
        page.click("#live-snapshot")
    archive = tmp_path / started.value.suggested_filename
    started.value.save_as(archive)
    with zipfile.ZipFile(archive) as files:
        assert {"disparity.png", "points.ply", "depth.png", "arrays.npz"} <= set(files.namelist())
        assert json.loads(files.read("summary.json"))["model"] == "sgbm"
    page.click("#live-record")
    until(page, lambda: page.inner_text("#live-record") == "Stop recording")
    frame = status(live)["frame"]
    until(page, lambda: status(live)["frame"] >= frame + 5)
    page.click("#live-record")
    until(page, lambda: "is complete" in page.inner_text("#live-status"))
    recorded = StereoVideo(video.parent / status(live)["recorded"])
    assert next(iter(recorded)).left.shape == (HEIGHT, WIDTH, 3)


@needs_chromium
def test_it_fits_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for view in ("disparity", "depth", "points"):
        page.check(f"[value={view}]", force=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_client_that_does_not_read_holds_nobody_up(live: Server) -> None:
    ask(live, "POST", "?paused=false")
    host, port = live.url.removeprefix("http://").rstrip("/").split(":")
    request = "GET /api/v1/live/view HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer s3cret\r\n\r\n"
    with socket.create_connection((host, int(port))) as idle:
        idle.sendall(request.encode() * 20)
        frame = status(live)["frame"]
        happens(lambda: status(live)["frame"] > frame + 3)
