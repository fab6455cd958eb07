"""Servers of the tests, and small pairs to send to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from aanet.data.motorcycle import MOTORCYCLE_CAMERA, motorcycle
from aanet.io.images import encode_image
from aanet.typing import Image
from helpers.chromium import CHROMIUM, FLAGS
from helpers.hostile import png_of_zeros
from helpers.server import Server, start_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """With the usual limits, and SGBM."""
    started = start_server("--model", "sgbm")
    yield started
    errors = started.stop()
    assert "Traceback" not in errors, errors


@pytest.fixture
def start() -> Iterator[Callable[..., Server]]:
    """Start servers with options of one's own; they end with the test."""
    servers: list[Server] = []

    def begin(*options: str, **how: Any) -> Server:
        servers.append(start_server(*options, **how))
        return servers[-1]

    yield begin
    for each in servers:
        each.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra dev)")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


def png(image: Image) -> bytes:
    return encode_image(image, ".png")


@pytest.fixture(scope="session")
def whole_pair() -> dict[str, bytes]:
    """The Motorcycle pair with its camera."""
    sample = motorcycle()
    return {
        "left": png(sample.left),
        "right": png(sample.right),
        "calib": MOTORCYCLE_CAMERA.to_json().encode(),
    }


@pytest.fixture(scope="session")
def small_pair() -> dict[str, bytes]:
    """A window of it: quick to match."""
    return window(180, 200, 200, 120)


@pytest.fixture(scope="session")
def tiny_pair() -> dict[str, bytes]:
    """A smaller window, for many requests."""
    return window(200, 220, 96, 56)


def window(x: int, y: int, width: int, height: int) -> dict[str, bytes]:
    sample = motorcycle()
    inside = np.s_[y : y + height, x : x + width]
    camera = MOTORCYCLE_CAMERA.cropped(x, y, width, height)
    return {
        "left": png(np.ascontiguousarray(sample.left[inside])),
        "right": png(np.ascontiguousarray(sample.right[inside])),
        "calib": camera.to_json().encode(),
    }


@pytest.fixture(scope="session")
def bomb() -> bytes:
    return png_of_zeros(40000, 40000)
