"""The page behind a reverse proxy that offers the server under a path of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from helpers.chromium import CHROMIUM
from helpers.page import match, open_page
from helpers.prefix_proxy import prefix_proxy
from helpers.server import Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]


def test_the_page_works_under_any_path(
    browser: Browser, local_server: Server, files: dict[str, Path]
) -> None:
    """Neither the server nor the page is told the path; the API page opens beside the result."""
    with prefix_proxy(local_server.url, "/vision/stereo/") as url:
        for page in open_page(browser, url):
            asked: list[str] = []
            page.context.on("request", lambda request, asked=asked: asked.append(request.url))
            match(page, files)
            page.click("#example")
            page.wait_for_selector(".drop[data-part=left].full img[alt='Preview of left.png']")
            with page.context.expect_page() as opened:
                page.click("header a")
            assert opened.value.url == f"{url}docs"
            assert opened.value.evaluate("window.opener") is None
            assert page.is_visible("#under")
            outside = [each for each in asked if not each.startswith((url, "blob:", "data:"))]
            assert not outside
            assert any("/vision/stereo/api/v1/disparity" in each for each in asked)
