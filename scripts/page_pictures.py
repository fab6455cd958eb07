"""Take the pictures of the page that the documentation shows: `python scripts/page_pictures.py`.

Starts a server, lets Chromium match the Motorcycle pair as a visitor would, and writes `page-light.jpg`
(disparity beside the image) and `page-dark.jpg` (points).
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from aanet.models.weights import files

IMAGES = Path(__file__).parents[1] / "docs" / "images"
FLAGS = ("--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
PATIENCE = 120_000  # milliseconds for a match, on any machine


def main() -> None:
    """Both pictures, from one server."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=files.DEFAULT, help="what matches")
    parser.add_argument("--output", "-o", type=Path, default=IMAGES, help="folder of the pictures")
    arguments = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("There is no Chromium on this machine.")
    command = [Path(sys.executable).with_name("aanet"), "serve", "--port", "0", "--model", arguments.model]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            line = next((line for line in server.stdout if "http://" in line), None)
            if line is None:
                sys.exit("The server did not start; it says why above.")
            address = next(word for word in line.split() if word.startswith("http://"))
            with sync_playwright() as driver:
                browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
                for scheme, look in (("light", at_disparity), ("dark", at_points)):
                    size = {"width": 1280, "height": 900}
                    page = browser.new_page(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
                    page.goto(address)
                    page.click("#example-2")
                    page.wait_for_selector("#shown:not([hidden])", timeout=PATIENCE)
                    look(page)
                    target = arguments.output / f"page-{scheme}.jpg"
                    page.screenshot(path=target, full_page=True, type="jpeg", quality=85)
        finally:
            server.terminate()


def at_disparity(page: Page) -> None:
    """The disparity beside the left image, with the values under the pointer."""
    page.select_option("#against", "left")
    page.locator("#stage").hover(position={"x": 520, "y": 320})


def at_points(page: Page) -> None:
    """The point cloud as it first appears."""
    page.check("[value=points]", force=True)
    page.wait_for_timeout(2000)  # until it is drawn


if __name__ == "__main__":
    main()
