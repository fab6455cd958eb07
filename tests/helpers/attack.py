"""Thousands of hostile requests against a server, the same for the same seed.

    python -m helpers.attack --cases 2500     (in tests/, or `make attack`)

Every request must be answered or its connection closed within `PATIENCE` seconds, without a 5xx other than a
503 with `Retry-After`, and every error is JSON with a code and a sentence. Afterwards the server must still
match a pair, with the same processes as before and nothing unexpected in its log.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import psutil

from helpers.hostile_requests import Requests
from helpers.server import Server, start_server

PATIENCE = 30.0  # seconds
AT_ONCE = 8
SILENCE = 1.0  # seconds after which the server is taken to wait for the rest of a request


@dataclass
class Outcome:
    """What came of the attack; `faults` must be empty."""

    responses: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    slowest: float = 0.0
    growth: int = 0  # bytes of memory of the server


def send(address: tuple[str, int], request: bytes, whole: bool = True) -> bytes:
    """Send a request and return what comes until the connection is closed.

    If the request may not be `whole`, our side is closed after a silence, and the server must close its, too.
    """
    received = bytearray()
    with socket.create_connection(address, timeout=PATIENCE) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused while it was sent
            connection.sendall(request)
        if not whole:
            with contextlib.suppress(TimeoutError, OSError):
                connection.settimeout(SILENCE)
                received += connection.recv(1 << 20)
            with contextlib.suppress(OSError):
                connection.settimeout(PATIENCE)
                connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while data := connection.recv(1 << 16):
                received += data
    return bytes(received)


def judge(response: bytes) -> tuple[str, str | None]:
    """Return the status of a response, or "closed", and what is wrong with it."""
    if not response:
        return "closed", None
    head, _, body = response.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    status = lines[0].split(" ")[1] if lines[0].startswith("http/1.1 ") else lines[0][:40]
    if status == "100":
        return judge(body)
    if status.startswith("5") and not (status == "503" and "retry-after:" in head.decode("latin-1").lower()):
        return status, body[:200].decode("utf-8", "replace")
    if "x-content-type-options: nosniff" not in lines:
        return status, "no security headers"
    length = next((int(line.split(": ")[1]) for line in lines if line.startswith("content-length: ")), 0)
    if status.startswith("4") and body and not body.startswith(b"HTTP/"):  # the next response, after HEAD
        problem = json.loads(body[:length])
        if set(problem) != {"code", "message"} or "Traceback" in problem["message"]:
            return status, str(problem)[:200]
    return status, None


def attack(server: Server, cases: int, seed: int = 0) -> Outcome:
    """Send `cases` hostile requests, some at a time."""
    address = ("127.0.0.1", int(server.url.rstrip("/").split(":")[-1]))
    requests, outcome = Requests(seed), Outcome()
    process = psutil.Process(server.process.pid)
    for _ in range(3):
        if judge(send(address, requests.good()))[0] != "200":
            raise AssertionError("the good request fails")
    children, memory = set(process.children()), process.memory_info().rss

    def ask(numbered: tuple[int, tuple[str, bytes]]) -> None:
        number, (kind, request) = numbered
        start = time.monotonic()
        try:
            status, fault = judge(send(address, request, whole=kind != "raw"))
        except Exception as error:
            status, fault = type(error).__name__, str(error) or "no answer in time"
        outcome.slowest = max(outcome.slowest, time.monotonic() - start)
        outcome.responses[f"{kind} {status}"] += 1
        if fault is not None:
            outcome.faults.append(f"case {number} ({kind}): {status}: {fault}")

    with ThreadPoolExecutor(AT_ONCE) as clients:
        list(clients.map(ask, enumerate(requests.draw(cases))))
    outcome.growth = process.memory_info().rss - memory
    if judge(send(address, requests.good()))[0] != "200":
        outcome.faults.append("the good request fails afterwards")
    if set(process.children()) != children:
        outcome.faults.append("a matcher crashed or was stopped")
    if server.taken():
        outcome.faults.append("slots are still taken")
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2500)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    server = start_server("--model", "sgbm")
    start = time.monotonic()
    try:
        outcome = attack(server, chosen.cases, chosen.seed)
    finally:
        seconds, log = time.monotonic() - start, server.stop()
    statuses: Counter[str] = Counter()
    for name, count in sorted(outcome.responses.items()):
        print(f"{count:6d} {name}")
        statuses[name.split()[1]] += count
    print(f"{dict(statuses)}; slowest {outcome.slowest:.2f} s, {seconds:.0f} s in all")
    print(f"memory of the server {outcome.growth / 1e6:+.1f} MB")
    if "Traceback" in log:
        outcome.faults.append(log[-2000:])
    for fault in outcome.faults:
        print(fault)
    print(f"{len(outcome.faults)} faults")
    raise SystemExit(bool(outcome.faults))


if __name__ == "__main__":
    main()
