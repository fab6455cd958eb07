"""Middleware: the limit of the request size, refusals by headers, and what all responses have in common."""

from __future__ import annotations

import logging
from collections.abc import Callable

from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aanet.web.access import Access
from aanet.web.errors import ServiceError, internal
from aanet.web.metrics import Metrics
from aanet.web.paths import below, route_path, with_plain_path
from aanet.web.request_log import RequestEntry
from aanet.web.settings import MEGABYTE

log = logging.getLogger("aanet.web")

# Scripts, styles and images are loaded from this server only, and other sites cannot embed its files.
SECURITY_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


class Gate:
    """The outermost middleware: refuses foreign requests and completes every response.

    Every response, also that to an unexpected error, is counted, is logged, and has headers that keep a
    browser from contacting other servers and from caching results.

    Args:
        app: What handles the requests that are not refused.
        metrics: Where responses are counted.
        access: Decides which requests are refused by their headers.
        root_path: See `Settings`.
        refuse_early: Raises the error of a request that its method, path and query show to be in vain. Under
            a flood, it is several times as fast as the framework, which would parse and validate the request
            first.
    """

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        access: Access,
        root_path: str,
        refuse_early: Callable[[Scope], None],
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._access = access
        self._root_path = root_path
        self._refuse_early = refuse_early

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = below(self._root_path, with_plain_path(scope))
        method, entry = scope["method"], RequestEntry(scope)

        async def complete(message: Message) -> None:
            entry.observe(message)
            if message["type"] == "http.response.start":
                self._metrics.count(method, message["status"])
                present = {name for name, _ in message["headers"]}
                added = [header for header in SECURITY_HEADERS if header[0] not in present]
                message["headers"] = [*message["headers"], *added, *self._access.cors_headers(scope)]
            await send(message)

        try:
            response = self._respond_early(scope)
            if method == "HEAD":  # the server omits the body
                scope["method"] = "GET"
            await (response or self._app)(scope, receive, complete)
        except ServiceError as error:
            await error.response()(scope, receive, complete)
        except Exception:
            log.exception("%s failed", entry.request)
            if entry.status is not None:
                raise
            await internal().response()(scope, receive, complete)
        finally:
            entry.write()

    def _respond_early(self, scope: Scope) -> Response | None:
        """Return or raise the response that does not need the application, if there is one."""
        self._access.check(scope)
        self._refuse_early(scope)
        root = scope.get("root_path", "")
        if root and route_path(scope) == "":  # relative links of the page need the slash
            return RedirectResponse(f"{root}/")
        return self._access.preflight(scope)


class UploadLimit:
    """Responds with 413 to a request that is too large, with or without a Content-Length header.

    The rest of a refused upload is discarded by the server after the response.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "http" and _content_length(scope) > self._max_bytes:
            raise _too_large(self._max_bytes)
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise _too_large(self._max_bytes)
            return message

        await self._app(scope, counted, send)


def _content_length(scope: Scope) -> int:
    length = dict(scope["headers"]).get(b"content-length", b"0")
    return int(length) if length.isdigit() else 0


def _too_large(max_bytes: int) -> ServiceError:
    limit = f"{max_bytes / MEGABYTE:g} MB"
    return ServiceError(413, "too_large", f"The request is larger than {limit}, the limit of this server.")
