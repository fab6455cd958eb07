"""Two hundred requests, sixteen at a time: the good ones are answered right, and memory does not grow."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aanet.io.images import decode_image
from aanet.matcher import StereoMatcher
from helpers import load_client
from helpers.server import Server

CLIENT = Path(load_client.__file__)
MEGABYTE = 1_000_000


@pytest.mark.slow
def test_good_requests_are_answered_among_hostile_and_impatient_ones(
    start: Callable[..., Server], tiny_pair: dict[str, bytes], bomb: bytes
) -> None:
    good = {side: tiny_pair[side] for side in ("left", "right")}
    requests = [
        *(_request("good", good, 60) for _ in range(120)),
        *(_request("bomb", {**good, "left": bomb}, 60) for _ in range(20)),
        *(_request("text", {**good, "right": b"no image"}, 60) for _ in range(20)),
        *(_request("cut", {**good, "left": good["left"][:-600]}, 60) for _ in range(10)),
        *(_request("impatient", good, 0.02) for _ in range(30)),
    ]
    random.Random(0).shuffle(requests)
    server = start("--model", "sgbm", "--queue", "6")
    _ask(server, [_request("good", good, 60) for _ in range(24)])  # threads, caches and arenas
    before = _memory(server)
    seen = _ask(server, requests)
    assert sum(seen["good"].values()) == 120
    assert seen["good"] == {f"200 {zlib.crc32(_expected(good))}": 120}
    assert seen["bomb"] == {"413": 20}
    assert seen["text"] == {"415": 20}
    assert seen["cut"] == {"422": 10}
    assert set(seen["impatient"]) <= {"left", *seen["good"]}
    assert seen["refusals"].get("retry", 0) > 0  # the queue was full at times, or this showed little
    assert "no Retry-After" not in seen["refusals"]
    assert _memory(server) - before < 25 * MEGABYTE
    statuses = [line for line in server.get("/metrics").text.splitlines() if "aanet_responses_total{" in line]
    assert not [line for line in statuses if 'status="5' in line and 'status="503"' not in line]
    assert server.taken() == 0
    assert "Traceback" not in server.stop()


def _request(kind: str, files: dict[str, bytes], patience: float) -> dict[str, Any]:
    return {"kind": kind, "patience": patience, "files": {name: data.hex() for name, data in files.items()}}


def _ask(server: Server, requests: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    task = {"url": f"{server.api}/disparity", "requests": requests, "at_once": 16}
    done = subprocess.run(
        [sys.executable, str(CLIENT)], input=json.dumps(task), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, dict[str, int]] = json.loads(done.stdout)
    return seen


def _expected(files: dict[str, bytes]) -> bytes:
    left, right = (decode_image(files[side], side) for side in ("left", "right"))
    buffer = io.BytesIO()
    np.save(buffer, StereoMatcher("sgbm")(left, right).disparity)
    return buffer.getvalue()


def _memory(server: Server) -> float:
    lines = server.get("/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("process_resident_memory_bytes "))
