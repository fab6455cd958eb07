"""What a person does on the page, in a real Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from helpers.chromium import is_mistake

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def open_page(browser: Browser, url: str, **options: Any) -> Iterator[Page]:
    """The page, opened; fails if anything but this machine was asked, or if a script complained."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    opened = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda message: complaints.append(message.text) if is_mistake(message) else None)
    opened.goto(url)
    opened.wait_for_selector("#model option", state="attached")
    yield opened
    context.close()
    elsewhere = {urlsplit(url).hostname for url in asked if urlsplit(url).scheme not in ("blob", "data")}
    assert elsewhere == {"127.0.0.1"}
    assert not complaints


def match(page: Page, files: dict[str, Path], *parts: str) -> None:
    for part in parts or ("left", "right", "calib"):
        page.set_input_files(f"#{part}", files[part])
    page.click("#go")
    page.wait_for_selector("#shown:not([hidden])", timeout=120_000)


def download(page: Page, kind: str, folder: Path) -> Path:
    with page.expect_download() as started:
        page.click(f"[data-file={kind}]")
    path = folder / started.value.suggested_filename
    started.value.save_as(path)
    return path
