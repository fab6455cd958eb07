"""Servers of the tests, and small pairs to send to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from helpers import ray_server
from helpers.chromium import CHROMIUM, FLAGS
from helpers.hostile import png_of_zeros
from helpers.page import open_page
from helpers.pairs import whole, window
from helpers.server import COMMAND, Server, start_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from aanet.result import StereoResult

KINDS = ["aanet serve", pytest.param("Ray Serve", marks=[pytest.mark.slow, pytest.mark.extended])]


def command_of(kind: str) -> str:
    """How a kind of server is started."""
    if kind == "Ray Serve":
        ray_server.require_ray()
        return ray_server.COMMAND
    return COMMAND


@pytest.fixture(scope="session")
def local_server() -> Iterator[Server]:
    """`aanet serve` with the usual limits, and SGBM."""
    yield from run_server("aanet serve")


@pytest.fixture(scope="session", params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The same, and the application for Ray Serve: what holds for one holds for the other."""
    if request.param == "aanet serve":
        yield request.getfixturevalue("local_server")
    else:
        yield from run_server(request.param)


def run_server(kind: str) -> Iterator[Server]:
    started = start_server("--model", "sgbm", command=command_of(kind))
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


@pytest.fixture(params=KINDS)
def start_either(request: pytest.FixtureRequest, start: Callable[..., Server]) -> Callable[..., Server]:
    """The same for both kinds of servers."""
    return partial(start, command=command_of(request.param))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra dev)")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser, local_server: Server) -> Iterator[Page]:
    """The page of a server with SGBM."""
    yield from open_page(browser, local_server.url)


@pytest.fixture(scope="session")
def whole_pair() -> dict[str, bytes]:
    """The Motorcycle pair with its camera."""
    return whole()


@pytest.fixture(scope="session")
def small_pair() -> dict[str, bytes]:
    """A window of it: quick to match."""
    return window(180, 200, 200, 120)


@pytest.fixture(scope="module")
def files(small_pair: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The small pair and its calibration, to choose on the page."""
    folder = tmp_path_factory.mktemp("pair")
    paths = {"left": folder / "im0.png", "right": folder / "im1.png", "calib": folder / "camera.json"}
    for part, path in paths.items():
        path.write_bytes(small_pair[part])
    return paths


@pytest.fixture(scope="module")
def expected(files: dict[str, Path]) -> StereoResult:
    """What SGBM finds in the small pair."""
    from aanet.geometry.calibration import load_calibration
    from aanet.matcher import StereoMatcher

    calibration = load_calibration(files["calib"])
    return StereoMatcher("sgbm")(files["left"], files["right"], calibration=calibration, check=True)


@pytest.fixture(scope="session")
def tiny_pair() -> dict[str, bytes]:
    """A smaller window, for many requests."""
    return window(200, 220, 96, 56)


@pytest.fixture(scope="session")
def bomb() -> bytes:
    return png_of_zeros(40000, 40000)
