"""Time limits, clients that leave, and SIGTERM, with a real server."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from aanet.io.images import decode_image, encode_image
from helpers.server import Server

SLOW = 1.8  # the scale at which the whole pair takes some seconds


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(400):
        if condition():
            return
        time.sleep(0.025)
    raise AssertionError("it did not happen within ten seconds")


@pytest.mark.slow
def test_full_leaving_and_sigterm(start: Callable[..., Server], whole_pair: dict[str, bytes]) -> None:
    server = start("--model", "sgbm", "--queue", "1")
    with ThreadPoolExecutor(2) as clients:
        running = clients.submit(server.match, whole_pair, scale=SLOW)
        wait_until(lambda: server.taken() == 1)
        leave_while_waiting(server, whole_pair)
        waiting = clients.submit(server.match, whole_pair, scale=0.25)
        wait_until(lambda: server.taken() == 2)
        full = server.match(whole_pair, scale=0.25)
        assert (full.status_code, full.json()["code"]) == (503, "full")
        assert int(full.headers["Retry-After"]) >= 1
        assert not running.done()  # otherwise nothing was shown
        server.process.send_signal(signal.SIGTERM)
        refused = waiting.result()
        assert (refused.status_code, refused.json()["code"]) == (503, "stopping")
        assert running.result().status_code == 200
    assert server.process.wait(20) in (0, -signal.SIGTERM)
    with pytest.raises(httpx.ConnectError):
        server.get("/healthz")


def leave_while_waiting(server: Server, pair: dict[str, bytes]) -> None:
    """Send a whole request, wait until it has its slot, and hang up."""
    request = httpx.Request(
        "POST", f"{server.api}/disparity", files={name: (name, data) for name, data in pair.items()}
    )
    host, port = server.url.removeprefix("http://").rstrip("/").split(":")
    with socket.create_connection((host, int(port))) as raw:
        head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
        raw.sendall(f"POST /api/v1/disparity HTTP/1.1\r\n{head}\r\n".encode() + request.read())
        wait_until(lambda: server.taken() == 2)
    wait_until(lambda: server.taken() == 1)
    assert "aanet_client_disconnects_total 1.0" in server.get("/metrics").text


@pytest.mark.slow
def test_a_client_that_does_not_read_keeps_its_place_until_the_time_is_up(
    start: Callable[..., Server], whole_pair: dict[str, bytes]
) -> None:
    server = start("--model", "sgbm", "--timeout", "4", "--queue", "0")
    large = {side: _enlarged(whole_pair[side]) for side in ("left", "right")}
    request = httpx.Request("POST", f"{server.api}/disparity", files=large)
    host, port = server.url.removeprefix("http://").rstrip("/").split(":")
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect((host, int(port)))
        head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
        raw.sendall(
            f"POST /api/v1/disparity?format=arrays&scale=0.1 HTTP/1.1\r\n{head}\r\n".encode() + request.read()
        )
        assert raw.recv(15) == b"HTTP/1.1 200 OK"
        time.sleep(0.5)
        assert server.taken() == 1  # more than the buffers of the system hold is still to be sent
        wait_until(lambda: server.taken() == 0)


def test_a_stalled_upload_does_not_delay_the_end(start: Callable[..., Server]) -> None:
    server = start("--model", "sgbm")
    host, port = server.url.removeprefix("http://").rstrip("/").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as raw:
        raw.sendall(
            b"POST /api/v1/disparity HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n"
            b"Content-Type: multipart/form-data; boundary=b\r\n\r\n--b"
        )
        wait_until(lambda: server.taken() == 1)
        server.process.send_signal(signal.SIGTERM)
        received = b"".join(iter(lambda: raw.recv(65536), b""))
    assert received.startswith(b"HTTP/1.1 503")
    assert b"stopping" in received
    assert server.process.wait(20) in (0, -signal.SIGTERM)


def _enlarged(data: bytes) -> bytes:
    image = decode_image(data, "image")
    return encode_image(image.repeat(3, axis=0).repeat(3, axis=1), ".png")


def test_a_request_has_a_time_limit(
    start_either: Callable[..., Server], whole_pair: dict[str, bytes]
) -> None:
    server = start_either("--model", "sgbm", "--timeout", "0.6")
    response = server.match(whole_pair, scale=SLOW)
    assert (response.status_code, response.json()["code"]) == (503, "timeout")
    assert "0.6 seconds" in response.json()["message"]
    assert "Retry-After" in response.headers


def test_an_upload_has_a_time_limit(start: Callable[..., Server]) -> None:
    server = start("--model", "sgbm", "--timeout", "0.3", "--queue", "0")
    host, port = server.url.removeprefix("http://").rstrip("/").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as raw:
        raw.sendall(
            b"POST /api/v1/disparity HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n"
            b"Content-Type: multipart/form-data; boundary=b\r\n\r\n--b"
        )
        wait_until(lambda: server.taken() == 1)
        wait_until(lambda: server.taken() == 0)  # somebody who sends nothing does not keep others out
        raw.sendall(b"x" * 47)
        assert raw.recv(100).startswith(b"HTTP/1.1 408")
