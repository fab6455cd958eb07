"""The API page in a real Chromium, and its JavaScript example on the page of another site."""

from __future__ import annotations

import base64
import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from aanet.web.app import create_app
from aanet.web.examples import BASE, call_of, javascript
from aanet.web.openapi import document
from helpers.asgi import IN_PROCESS
from helpers.chromium import CHROMIUM, is_mistake
from helpers.server import Server

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra dev)")
if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]
TOKEN = "s3cret"


def opened(browser: Browser, url: str, **options: Any) -> Iterator[Page]:
    """A page that asks nobody but this machine, and whose scripts do not complain."""
    context = browser.new_context(**options)
    page = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if is_mistake(message) else None)
    page.goto(url)
    yield page
    context.close()
    assert {urlsplit(each).hostname for each in asked} == {"127.0.0.1"}
    assert not complaints


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_it_fits_and_shows_one_language(
    browser: Browser, local_server: Server, theme: str, width: int
) -> None:
    options = {"viewport": {"width": width, "height": 844}, "color_scheme": theme}
    for page in opened(browser, f"{local_server.url}api/v1/", **options):  # which leads to it
        page.wait_for_selector(".scripted")
        assert page.url == f"{local_server.url}docs"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        shown = "#matchPair figure.chosen"
        assert "curl -F left=@left.png" in page.inner_text(shown)
        page.click(f"{shown} >> text=Python")
        code = page.inner_text(f"{shown} code")
        assert "import httpx" in code
        assert f"{local_server.url}api/v1/disparity" in code
        assert BASE not in page.inner_text("main")
        assert "import httpx" in page.inner_text("#listModels figure.chosen code")  # all follow
        page.reload()
        assert "import httpx" in page.inner_text(f"{shown} code")  # and it is remembered


class Elsewhere(BaseHTTPRequestHandler):
    """A page of another origin."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><link rel=icon href=data:,><input type=file id=left>")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def other_site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


SCRIPT = """async ({left, right, token}) => {
    const read = async (data) => (await fetch("data:image/png;base64," + data)).blob();
    const files = { "#left": [await read(left)], "#right": [await read(right)] };
    const document = { querySelector: (name) => ({ files: files[name] }) };
    EXAMPLE
    return [response.headers.get("Aanet-Model"), (await result.text()).slice(0, 2)];
}"""


def test_the_javascript_example_works_on_an_allowed_site_only(
    browser: Browser, start: Callable[..., Server], small_pair: dict[str, bytes]
) -> None:
    described = document(create_app(replace(IN_PROCESS, token=TOKEN)))
    path = "/api/v1/disparity"
    example = javascript(call_of("post", path, described["paths"][path]["post"]))
    given = {side: base64.b64encode(small_pair[side]).decode() for side in ("left", "right")}
    with other_site() as allowed, other_site() as foreign:
        server = start("--model", "sgbm", "--token", TOKEN, "--allow-origin", allowed)
        script = SCRIPT.replace("EXAMPLE", example.replace(BASE, server.url.rstrip("/")))
        page = browser.new_page()
        page.goto(allowed)
        assert page.evaluate(script, {**given, "token": TOKEN}) == ["sgbm", "Pf"]
        page.goto(foreign)
        with pytest.raises(playwright.Error, match="Failed to fetch"):
            page.evaluate(script, {**given, "token": TOKEN})
        page.close()
