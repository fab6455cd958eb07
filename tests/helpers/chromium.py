"""A real Chromium for tests of the page."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from aanet.io.images import decode_image

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--use-gl=angle", "--use-angle=swiftshader"),
    *("--enable-unsafe-swiftshader", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no name leads anywhere
)


def is_mistake(message: Any) -> bool:
    """Errors, but not Chromium's note that a request was refused or not sent: some tests want that."""
    wanted = ("the server responded with a status of 4", "net::ERR_INTERNET_DISCONNECTED")
    return message.type == "error" and not any(text in message.text for text in wanted)


def picture(page: Page, canvas: str) -> np.ndarray:
    url = page.evaluate("(id) => document.getElementById(id).toDataURL()", canvas)
    return decode_image(base64.b64decode(url.split(",")[1]), canvas)[..., :3].astype(int)


def until(page: Page, condition: Callable[[], bool]) -> None:
    """Playwright's own waiting evaluates strings inside the page, which its security policy forbids."""
    for _ in range(600):
        if condition():
            return
        page.wait_for_timeout(50)
    raise AssertionError("it did not happen within half a minute")
