"""A real server in a process of its own, and small pairs to send to it."""

from __future__ import annotations

import io
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import pytest

from aanet.data.motorcycle import MOTORCYCLE_CAMERA, motorcycle
from aanet.io.images import encode_image
from aanet.typing import Image

_COMMAND = "import typer; from aanet.cli.serve import serve; typer.run(serve)"
_PATIENCE = 60  # seconds until a started server must say where it is


@dataclass
class Server:
    process: subprocess.Popen[str]
    url: str

    @property
    def api(self) -> str:
        return f"{self.url}api/v1"

    def match(self, files: dict[str, bytes], **query: object) -> httpx.Response:
        url = f"{self.api}/disparity"
        return httpx.post(url, files=as_form(files), params=query, timeout=60, trust_env=False)

    def get(self, path: str, **options: object) -> httpx.Response:
        return httpx.get(self.url.rstrip("/") + path, timeout=20, trust_env=False, **options)

    def taken(self, model: str = "sgbm") -> int:
        models = self.get("/api/v1/models").json()["models"]
        return next(each["taken"] for each in models if each["name"] == model)

    def stop(self) -> str:
        """Ask it to stop, and return what it has written to stderr."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=60)[1]


def as_form(files: dict[str, bytes]) -> dict[str, tuple[str, bytes]]:
    return {name: (f"{name}.bin", data) for name, data in files.items()}


def start_server(*options: str, cache: Path | None = None) -> Server:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if cache is not None:
        environment["AANET_CACHE"] = str(cache)
    process = subprocess.Popen(
        [sys.executable, "-c", _COMMAND, "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], _PATIENCE)[0]:
        process.kill()
    line = process.stdout.readline()
    if "http://" not in line:
        process.kill()
        raise AssertionError(f"the server did not start: {line}{process.communicate()[1]}")
    address = line.split("http://")[1].split("/")[0]
    return Server(process, f"http://{address}/")


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

    def begin(*options: str, cache: Path | None = None) -> Server:
        servers.append(start_server(*options, cache=cache))
        return servers[-1]

    yield begin
    for each in servers:
        each.stop()


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
    """A PNG of a few hundred bytes whose header promises 40000 × 40000 pixels, and keeps no promise."""
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    file = io.BytesIO(b"\x89PNG\r\n\x1a\n")
    file.seek(0, io.SEEK_END)
    file.write(chunk(b"IHDR", struct.pack(">IIBBBBB", 40000, 40000, 8, 0, 0, 0, 0)))
    file.write(chunk(b"IDAT", zlib.compress(bytes(1000))))
    file.write(chunk(b"IEND", b""))
    return file.getvalue()
