"""What is decided before a request reaches the application: how much it may send, and what may come back."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aanet.web.errors import ServiceError
from aanet.web.settings import MEGABYTE

_PATIENCE = 10.0  # seconds for the rest of an upload that is refused anyway

# Scripts, styles and pictures come from this server alone, whatever a page tries.
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
    """Adds the headers that keep a browser from asking elsewhere, and from keeping results."""

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
    """Answers 413 to a request that is larger than allowed, whether or not it says so beforehand.

    A refused upload is read to its end (up to the same limit again) and thrown away before the response is
    sent: many clients, browsers among them, look for a response only after they have sent everything.
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

        if _announced(scope) > self._max_bytes:
            await _too_large(self._max_bytes).response()(scope, receive, after_body)
        else:
            await self._app(scope, body.receive, after_body)


class _Body:
    """Counts what is received."""

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
        async def to_the_end() -> None:
            limit = self._received + self._max_bytes
            while not self._ended and self._received <= limit:
                await self._next()

        try:
            await asyncio.wait_for(to_the_end(), _PATIENCE)
        except asyncio.TimeoutError:
            return

    async def _next(self) -> Message:
        message = await self._receive()
        self._received += len(message.get("body", b""))
        self._ended = message["type"] == "http.disconnect" or not message.get("more_body", False)
        return message


def _announced(scope: Scope) -> int:
    length = dict(scope["headers"]).get(b"content-length", b"0")
    return int(length) if length.isdigit() else 0


def _too_large(max_bytes: int) -> ServiceError:
    limit = f"{max_bytes / MEGABYTE:g} MB"
    return ServiceError(413, "too_large", f"The request is larger than the {limit} that are taken here.")
