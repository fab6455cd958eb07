"""The viewer of points outside of the page: a static site with its modules and a PLY file."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from aanet.io.points import write_ply
from aanet.web.page import STATIC
from helpers.chromium import CHROMIUM, is_mistake, picture, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]
MODULES = ("viewer.js", "orbit.js", "ply.js", "wheel.js")  # what the header of viewer.js names
SITE = """<!doctype html>
<canvas id="cloud" tabindex="0" style="width: 400px; height: 300px; background: #102030"></canvas>
<p id="problem"></p><div style="height: 2000px"></div><script type="module">
import { PointViewer } from "./viewer.js";
const viewer = new PointViewer(document.getElementById("cloud"), { wheelNeedsFocus: true });
try { await viewer.open(new URLSearchParams(location.search).get("file")); }
catch (error) { document.getElementById("problem").textContent = error.message; }
</script>"""


@pytest.fixture
def site(browser: Browser, tmp_path: Path) -> Iterator[tuple[Page, str]]:
    for name in MODULES:
        shutil.copy(STATIC / "js" / name, tmp_path)
    (tmp_path / "index.html").write_text(SITE)
    y, x = np.mgrid[-0.3:0.3:61j, -0.4:0.4:81j]  # a wall two meters in front of the camera, left half red
    points = np.stack([2 * x, 2 * y, np.full_like(x, 2.0)], axis=-1).reshape(-1, 3).astype(np.float32)
    colors = np.where(points[:, :1] < 0, (255, 0, 0), (0, 255, 0)).astype(np.uint8)
    write_ply(tmp_path / "wall.ply", points, colors)
    (tmp_path / "cut.ply").write_bytes((tmp_path / "wall.ply").read_bytes()[:-100])

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nothing to say."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        page = browser.new_page()
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if is_mistake(message) else None)
        yield page, f"http://127.0.0.1:{server.server_port}/"
        page.close()
        server.shutdown()
        thread.join()
    assert not complaints


def test_a_static_site_shows_a_ply_file(site: tuple[Page, str]) -> None:
    page, url = site
    page.goto(f"{url}?file=wall.ply")
    until(page, lambda: bool(page.get_attribute("#cloud", "data-view")))
    shown = picture(page, "cloud")
    red, green = ((shown == color).all(axis=-1) for color in ((255, 0, 0), (0, 255, 0)))
    assert 0.7 < (red | green).mean() < 1  # it fits the canvas
    assert 0.7 < red.sum() / green.sum() < 1.5
    assert np.nonzero(red)[1].mean() < 150 < 250 < np.nonzero(green)[1].mean()
    view = page.get_attribute("#cloud", "data-view")
    page.mouse.move(200, 150)
    page.mouse.wheel(0, 200)
    until(
        page, lambda: page.evaluate("scrollY") > 0
    )  # the wheel is that of the page until the viewer is clicked
    page.evaluate("scrollTo(0, 0)")
    page.mouse.click(200, 150)
    page.mouse.wheel(0, -300)
    until(page, lambda: page.get_attribute("#cloud", "data-view") != view)


def test_a_ply_file_that_cannot_be_read_is_refused_in_words(site: tuple[Page, str]) -> None:
    page, url = site
    for file, words in (("cut.ply", "incomplete"), ("index.html", "not a PLY"), ("no.ply", "status 404")):
        page.goto(f"{url}?file={file}")
        until(page, lambda words=words: words in page.inner_text("#problem"))
