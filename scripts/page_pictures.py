"""Take the pictures of the page that the documentation shows: `python scripts/page_pictures.py`.

Starts servers, lets Chromium do what a visitor would, and writes `page-light.jpg` (disparity beside the
image), `page-dark.jpg` (points) and `live.jpg` (a video as the camera).
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measure_live import HEIGHT, WIDTH, write_video
from playwright.sync_api import Browser, Page, sync_playwright

from aanet.data.motorcycle import MOTORCYCLE_CAMERA
from aanet.models.weights import files

IMAGES = Path(__file__).parents[1] / "docs" / "images"
FLAGS = ("--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
PATIENCE = 600_000  # milliseconds for a match, on any machine
LIVE_MODEL = ("--model", "aanet_fast", "--scale", "0.5")


def main() -> None:
    """All pictures, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pictures", nargs="*", default=["page", "live"], help="page or live")
    parser.add_argument("--model", default=files.DEFAULT, help="what matches")
    parser.add_argument("--output", "-o", type=Path, default=IMAGES, help="folder of the pictures")
    arguments = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("There is no Chromium on this machine.")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        if "page" in arguments.pictures:
            with serving("serve", "--model", arguments.model, "--timeout", "600") as address:
                take_page(browser, address, arguments.output)
        if "live" in arguments.pictures:
            take_live(browser, arguments.output / "live.jpg")


@contextmanager
def serving(*command: str) -> Iterator[str]:
    """The address of a server."""
    words = [sys.executable, "-m", "aanet", *command, "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            line = next((line for line in server.stdout if "http://" in line), None)
            if line is None:
                sys.exit("The server did not start; it says why above.")
            yield next(word for word in line.split() if word.startswith("http://"))
        finally:
            server.terminate()


def take_page(browser: Browser, address: str, folder: Path) -> None:
    """The Motorcycle pair: its disparity beside the left image, and in the dark theme its points."""
    page = open_page(browser, address)
    page.click("#example-2")
    page.wait_for_selector("#shown:not([hidden])", timeout=PATIENCE)
    at_disparity(page)
    page.screenshot(path=folder / "page-light.jpg", full_page=True, type="jpeg", quality=85)
    page.emulate_media(color_scheme="dark")
    page.check("[value=points]", force=True)
    page.wait_for_timeout(2000)  # until it is drawn
    page.screenshot(path=folder / "page-dark.jpg", full_page=True, type="jpeg", quality=85)
    page.close()


def take_live(browser: Browser, target: Path) -> None:
    """The disparity of a moving camera beside the left image."""
    with tempfile.TemporaryDirectory() as folder:
        video, calibration = Path(folder) / "both.avi", Path(folder) / "camera.json"
        write_video(video)
        calibration.write_text(MOTORCYCLE_CAMERA.cropped(50, 10, WIDTH, HEIGHT).to_json())
        with serving("live", str(video), "--calib", str(calibration), *LIVE_MODEL) as address:
            page = open_page(browser, address)
            page.wait_for_selector("#shown:not([hidden])", timeout=PATIENCE)
            page.wait_for_timeout(8000)  # until the means of frames per second and latency have settled
            at_disparity(page)
            page.screenshot(path=target, full_page=True, type="jpeg", quality=85)
            page.close()


def open_page(browser: Browser, address: str) -> Page:
    """The page in a window of the size of the pictures."""
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
    page.goto(address)
    return page


def at_disparity(page: Page) -> None:
    """The disparity beside the left image, with the values under the pointer."""
    page.select_option("#against", "left")
    page.locator("#stage").hover(position={"x": 520, "y": 320})


if __name__ == "__main__":
    main()
