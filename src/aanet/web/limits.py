"""Middleware: the limit of the request size, and security headers of responses."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aanet.web.errors import ServiceError
from aanet.web.settings import MEGABYTE

_DRAIN_SECONDS = 10.0  # time limit for reading the rest of a refused upload

# Scripts, styles and images are loaded from this server only.
_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


class SafeHeaders:
    """Adds headers that keep a browser from contacting other servers and from caching results."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                message["headers"] += [header for header in _HEADERS if header[0] not in present]
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)


class UploadLimit:
    """Responds with 413 to a request that is too large, with or without a Content-Length header.

    A refused upload is read to its end (up to the same limit again) and discarded before the response is
    sent, because many clients, including browsers, read the response only after they have sent everything.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(receive, self._max_bytes)

        async def after_body(message: Message) -> None:
            if message["type"] == "http.response.start":
                await body.discard()
            await send(message)

        if _content_length(scope) > self._max_bytes:
            await _too_large(self._max_bytes).response()(scope, receive, after_body)
        else:
            await self._app(scope, body.receive, after_body)


class _Body:
    """Counts the received bytes of a request body."""

    def __init__(self, receive: Receive, max_bytes: int) -> None:
        self._receive = receive
        self._max_bytes = max_bytes
        self._received = 0
        self._ended = False

    async def receive(self) -> Message:
        message = await self._next()
        if self._received > self._max_bytes:
            raise _too_large(self._max_bytes)
        return message

    async def discard(self) -> None:
        async def drain() -> None:
            limit = self._received + self._max_bytes
            while not self._ended and self._received <= limit:
                await self._next()

        try:
            await asyncio.wait_for(drain(), _DRAIN_SECONDS)
        except asyncio.TimeoutError:
            return

    async def _next(self) -> Message:
        message = await self._receive()
        self._received += len(message.get("body", b""))
        self._ended = message["type"] == "http.disconnect" or not message.get("more_body", False)
        return message


def _content_length(scope: Scope) -> int:
    length = dict(scope["headers"]).get(b"content-length", b"0")
    return int(length) if length.isdigit() else 0


def _too_large(max_bytes: int) -> ServiceError:
    limit = f"{max_bytes / MEGABYTE:g} MB"
    return ServiceError(413, "too_large", f"The request is larger than {limit}, the limit of this server.")
