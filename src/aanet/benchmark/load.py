"""A load test of `aanet serve`: a server on this machine, and more and more clients that send it pairs.

Clients do not wait for the time of `Retry-After`: a refused one asks again after about `PAUSE` seconds, as a
flood of impatient clients would. A process of its own asks for `/healthz` meanwhile, each time in a new
connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import psutil

from aanet.errors import AanetError, InputError

LEVELS = (1, 16, 64, 200)
MAX_CLIENTS = 250  # the server has 256 connections
MAX_REQUESTS = 200_000  # of a level
PAUSE = 0.1  # seconds before a refused client asks again
SOAK_CLIENTS = 16
_SAMPLE_SECONDS = 0.2  # between two looks at the memory
_START_SECONDS = 300.0
_ANSWER_SECONDS = 180.0
_BOUNDARY = "aanet-load-test"

# Prints the time and the latency of one probe per line.
_PROBE = """
import socket, sys, time
host, port = sys.argv[1], int(sys.argv[2])
request = f"GET /healthz HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n".encode()
while True:
    start = time.monotonic()
    try:
        with socket.create_connection((host, port), timeout=30) as connection:
            connection.sendall(request)
            status = connection.recv(65536).split(b" ", 2)[1]
    except (OSError, IndexError):
        status = b"none"
    print(start, time.monotonic() - start if status == b"200" else "inf", flush=True)
    time.sleep(0.05)
"""

# Runs a command that Linux asks to end when the process that started it ends, even if that one is killed.
_TIED = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True)
class LoadedServer:
    """A running server."""

    process: subprocess.Popen[str]
    host: str
    port: int

    def memory(self) -> int:
        """Resident bytes of the server and its child processes."""
        total = 0
        with contextlib.suppress(psutil.Error):
            server = psutil.Process(self.process.pid)
            for each in (server, *server.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    total += int(each.memory_info().rss)
        return total


@dataclass(frozen=True)
class Level:
    """What a number of clients saw.

    Attributes:
        clients: The number of clients that ask at the same time.
        seconds: The duration of the measurement.
        latencies: Seconds of each matched pair, from the first byte sent to the last one received.
        statuses: How often each status came; "none" if the connection was closed without a response.
        retry_after: The values of `Retry-After` of the refusals.
        probes: Seconds of each probe; infinity if it was not answered with 200.
        memory: Seconds since the beginning and bytes of memory, over time.
    """

    clients: int
    seconds: float
    latencies: list[float]
    statuses: dict[str, int]
    retry_after: list[int]
    probes: list[float]
    memory: list[tuple[float, int]]

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, with percentiles instead of all latencies."""
        kept = {name: value for name, value in asdict(self).items() if name not in ("latencies", "probes")}
        return {
            **kept,
            "retry_after": [min(self.retry_after, default=None), max(self.retry_after, default=None)],
            "matched_per_second": len(self.latencies) / self.seconds,
            "latency_s": percentiles(self.latencies),
            "probe_s": percentiles(self.probes),
        }


def percentiles(values: Sequence[float]) -> dict[str, float | None]:
    """Return the 50th, 90th and 99th percentile and the maximum; None without values."""
    shares = {"p50": 50, "p90": 90, "p99": 99, "max": 100}
    # Not interpolated: probes without an answer are infinite.
    return {
        name: float(np.percentile(values, share, method="higher")) if len(values) else None
        for name, share in shares.items()
    }


@contextlib.contextmanager
def start_server(model: str, command: Sequence[str] | None = None) -> Iterator[LoadedServer]:
    """Start `aanet serve` on a free port of this machine and stop it when the block ends.

    On Linux it also ends if this process is killed.

    Args:
        model: The only model of the server.
        command: The command to run instead of `python -m aanet serve`.
    """
    words = [*(command or (sys.executable, "-m", "aanet", "serve")), "--port", "0", "--model", model]
    words += ["--log-level", "warning"]  # thousands of requests
    if sys.platform == "linux":
        words = [sys.executable, "-c", _TIED, str(os.getpid()), *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    timer = threading.Timer(_START_SECONDS, process.kill)
    timer.start()
    try:
        line = process.stdout.readline()
        timer.cancel()  # it runs as long as it is needed
        if "http://" not in line:
            raise AanetError("The server did not start.")
        host, port = line.split("http://")[1].split("/")[0].split(":")
        yield LoadedServer(process, host, int(port))
    finally:
        timer.cancel()
        process.terminate()
        process.wait()
        process.stdout.close()


def make_request(height: int, width: int) -> bytes:
    """Return a whole HTTP request that asks for the disparity of a real pair of this size."""
    import cv2

    from aanet.data.motorcycle import motorcycle
    from aanet.io.images import encode_image

    sample = motorcycle()
    body = io.BytesIO()
    for side, image in (("left", sample.left), ("right", sample.right)):
        resized = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
        disposition = f'Content-Disposition: form-data; name="{side}"; filename="{side}.jpg"'
        body.write(f"--{_BOUNDARY}\r\n{disposition}\r\n\r\n".encode())
        body.write(encode_image(np.asarray(resized, np.uint8), ".jpg") + b"\r\n")
    body.write(f"--{_BOUNDARY}--\r\n".encode())
    head = (
        "POST /api/v1/disparity HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: multipart/form-data; boundary={_BOUNDARY}\r\nContent-Length: {body.tell()}\r\n\r\n"
    )
    return head.encode() + body.getvalue()


def measure(
    server: LoadedServer,
    request: bytes,
    levels: Sequence[int],
    seconds: float,
    observe: Callable[[str], None] = lambda _: None,
) -> list[Level]:
    """Measure each number of clients for some seconds, one after the other."""
    for clients in levels:
        if not 1 <= clients <= MAX_CLIENTS:
            raise InputError(f"The number of clients must be from 1 to {MAX_CLIENTS}; got {clients}.")
    asyncio.run(_warm_up(server, request))
    measured = []
    for clients in levels:
        observe(f"{clients} clients")
        measured.append(asyncio.run(_level(server, request, clients, seconds)))
    return measured


async def _warm_up(server: LoadedServer, request: bytes) -> None:
    """Match a few pairs: caches, threads and memory arenas of the server."""
    seen = _Seen()
    await _client(server, request, time.monotonic() + _ANSWER_SECONDS, seen, most=3)
    if not seen.latencies:
        raise AanetError(f"The server does not match the pair of the load test: {dict(seen.statuses)}.")


@dataclass
class _Seen:
    """What the clients of a level have seen so far."""

    latencies: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    retry_after: list[int] = field(default_factory=list)


async def _level(server: LoadedServer, request: bytes, clients: int, seconds: float) -> Level:
    seen = _Seen()
    start = time.monotonic()
    end = start + seconds
    memory: list[tuple[float, int]] = []

    async def sample() -> None:
        while time.monotonic() < end:
            memory.append((time.monotonic() - start, server.memory()))
            await asyncio.sleep(_SAMPLE_SECONDS)

    with _probing(server) as probes:
        await asyncio.gather(sample(), *(_client(server, request, end, seen) for _ in range(clients)))
        duration = time.monotonic() - start
    return Level(clients, duration, seen.latencies, dict(seen.statuses), seen.retry_after, probes, memory)


async def _client(
    server: LoadedServer, request: bytes, end: float, seen: _Seen, most: int = MAX_REQUESTS
) -> None:
    """Send the request again and again, in one connection as long as it stays open."""
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
    await _pause()  # or all clients would connect and ask at the same moments
    while time.monotonic() < end and seen.statuses.total() < most:
        start = time.monotonic()
        try:
            connection = connection or await asyncio.open_connection(server.host, server.port)
            status, retry_after = await asyncio.wait_for(_ask(*connection, request), _ANSWER_SECONDS)
        except (TimeoutError, OSError, EOFError):
            status, retry_after = "none", None
        seen.statuses[status] += 1
        if status == "200":
            seen.latencies.append(time.monotonic() - start)
            continue
        if retry_after is not None:
            seen.retry_after.append(retry_after)
        if status == "none" and connection is not None:
            connection[1].close()
            connection = None
        await _pause()
    if connection is not None:
        connection[1].close()


async def _pause() -> None:
    await asyncio.sleep(PAUSE * random.uniform(0.5, 1.5))


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> tuple[str, int | None]:
    """Send a request; return the status and the value of `Retry-After`."""
    writer.write(request)
    await writer.drain()
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
    fields = dict(line.split(": ", 1) for line in head[1:] if line)
    await reader.readexactly(int(fields["content-length"]))
    return head[0].split()[1], int(fields["retry-after"]) if "retry-after" in fields else None


@contextlib.contextmanager
def _probing(server: LoadedServer) -> Iterator[list[float]]:
    """Probe the server until the block ends; the list is filled then."""
    latencies: list[float] = []
    words = [sys.executable, "-c", _PROBE, server.host, str(server.port)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        yield latencies
    finally:
        process.terminate()
        lines = process.communicate()[0].splitlines()
        latencies += [float(words[1]) for words in (line.split() for line in lines) if len(words) == 2]


def growth(level: Level) -> float:
    """Return how much the memory grew, as a share: the last quarter beside the second one, by medians."""
    amounts = [amount for _, amount in level.memory]
    quarter = max(len(amounts) // 4, 1)
    early, late = amounts[quarter : 2 * quarter], amounts[-quarter:]
    return float(np.median(late) / np.median(early or amounts) - 1)
