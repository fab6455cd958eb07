"""Connections: time limits, their number, and refusals at once, in a server of the test's own event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest
import uvicorn

from aanet.web import protocol
from aanet.web.app import create_app
from aanet.web.protocol import LimitedProtocol
from aanet.web.server import _Server, url_of
from aanet.web.settings import Settings
from helpers.asgi import IN_PROCESS

Connect = Callable[[bytes], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


@contextlib.asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[Connect]:
    config = uvicorn.Config(
        create_app(settings), http=LimitedProtocol, ws="none", port=0, lifespan="off", log_config=None
    )
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    port = server.servers[0].sockets[0].getsockname()[1]
    writers: list[asyncio.StreamWriter] = []

    async def connect(data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writers.append(writer)
        writer.write(data)
        return reader, writer

    yield connect
    for each in writers:
        each.close()
    await server.shutdown()


def check(scenario: Callable[[Connect], Awaitable[None]], **settings: float) -> None:
    async def run() -> None:
        async with serving(replace(IN_PROCESS, **settings)) as connect:  # type: ignore[arg-type]
            await asyncio.wait_for(scenario(connect), 60)

    asyncio.run(run())


async def response(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Status and problem; the connection may stay open."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
    assert fields["x-content-type-options"] == "nosniff"
    body = await reader.readexactly(int(fields["content-length"]))
    problem: dict[str, str] = json.loads(body)
    return int(head.split()[1]), problem


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP on Windows")
def test_a_closed_terminal_stops_the_server_as_sigterm_does() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also if the tests were started with nohup

    async def run() -> None:
        app = create_app(IN_PROCESS)
        config = uvicorn.Config(app, port=0, lifespan="off", log_config=None)
        server = _Server(config, app.state.service, lambda: None)
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup()
        signal.raise_signal(signal.SIGHUP)
        assert server.should_exit
        await server.shutdown()

    try:
        asyncio.run(run())
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:1/"),
        ("::", "http://[::1]:1/"),
        ("::1", "http://[::1]:1/"),
        ("192.168.0.2", "http://192.168.0.2:1/"),
    ],
)
def test_the_printed_address_can_be_opened(host: str, url: str) -> None:
    assert url_of(host, 1) == url


def test_headers_have_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.2)

    async def scenario(connect: Connect) -> None:
        for start in (b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "):
            reader, _ = await connect(start)
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""

    check(scenario)


def test_a_connection_is_kept_between_requests_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.5)
    request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

    async def scenario(connect: Connect) -> None:
        reader, writer = await connect(request)
        assert (await response(reader))[0] == 200
        writer.write(request)
        assert (await response(reader))[0] == 200
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""

    check(scenario)


def test_the_number_of_connections_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MAX_CONNECTIONS", 2)

    async def scenario(connect: Connect) -> None:
        _, first = await connect(b"G")
        await connect(b"G")
        reader, _ = await connect(b"")
        status, problem = await response(reader)
        assert (status, problem["code"]) == (503, "full")
        first.close()
        await first.wait_closed()
        while True:  # until the server has noticed
            reader, _ = await connect(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            if (await response(reader))[0] == 200:
                break
            await asyncio.sleep(0.02)

    check(scenario)


def test_what_is_not_http_gets_the_form_of_all_errors() -> None:
    async def scenario(connect: Connect) -> None:
        for junk in (b"\x16\x03\x01\x00\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/9\r\n\r\n"):
            reader, _ = await connect(junk)
            status, problem = await response(reader)
            assert (status, set(problem)) == (400, {"code", "message"})
        reader, _ = await connect(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert b'aanet_responses_total{method="",status="400"} 3.0' in await reader.read()

    check(scenario)


@pytest.mark.parametrize("method", [b"POST", b"HEAD"])
def test_damage_after_a_valid_header_is_answered_once(
    method: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(connect: Connect) -> None:
        reader, _ = await connect(
            method + b" /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n"
        )
        received = await reader.read()
        assert received.startswith(b"HTTP/1.1 400 ")
        assert received.count(b"HTTP/1.1") == 1
        assert (b"bad_request" in received) is (method == b"POST")

    check(scenario)
    assert [record for record in caplog.records if record.exc_info] == []


def test_a_whole_url_in_the_request_line_is_its_path() -> None:
    async def scenario(connect: Connect) -> None:
        reader, _ = await connect(b"GET http://127.0.0.1/healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert (await response(reader))[0] == 200
        reader, _ = await connect(b"GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert (await response(reader))[0] == 400

    check(scenario)


@pytest.mark.parametrize("expect", [b"", b"Expect: 100-continue\r\n"])
def test_a_large_upload_is_refused_before_it_is_sent(expect: bytes) -> None:
    async def scenario(connect: Connect) -> None:
        reader, _ = await connect(
            b"POST /api/v1/disparity HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2000\r\n"
            b"Content-Type: multipart/form-data; boundary=b\r\n" + expect + b"\r\n"
        )
        status, problem = await response(reader)  # although nothing of the body has been sent
        assert (status, problem["code"]) == (413, "too_large")

    check(scenario, max_upload_bytes=1000)


def test_a_stalled_upload_is_refused_without_waiting_for_the_rest() -> None:
    async def scenario(connect: Connect) -> None:
        reader, _ = await connect(
            b"POST /api/v1/disparity HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n"
            b"Content-Type: multipart/form-data; boundary=b\r\n\r\n--b"
        )
        status, problem = await asyncio.wait_for(response(reader), 8)  # of a body that never ends
        assert (status, problem["code"]) == (408, "too_slow")

    check(scenario, timeout=0.3)
