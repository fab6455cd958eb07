"""Middleware: the limit of the request size, refusals by headers, and what all responses have in common."""

from __future__ import annotations

import logging
from collections.abc import Callable
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aanet.web.errors import ServiceError, internal
from aanet.web.metrics import Metrics
from aanet.web.settings import MEGABYTE

log = logging.getLogger("aanet.web")

_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")

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

    Every response, also that to an unexpected error, is counted and has headers that keep a browser from
    contacting other servers and from caching results.

    Args:
        app: What handles the requests that are not refused.
        metrics: Where responses are counted.
        local: Whether to accept only requests whose host is this machine.
        local_clients: Whether to accept only clients on this machine.
        refuse_early: Raises the error of a request that its header shows to be in vain. Under a flood, it is
            several times as fast as the framework, which would parse and validate the request first.
    """

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        local: bool,
        local_clients: bool,
        refuse_early: Callable[[Scope], None],
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._local = local
        self._local_clients = local_clients
        self._refuse_early = refuse_early

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method, started = scope["method"], False

        async def complete(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                self._metrics.count(method, message["status"])
                present = {name for name, _ in message["headers"]}
                added = [header for header in SECURITY_HEADERS if header[0] not in present]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        try:
            scope = _with_plain_path(scope)
            self._refuse_foreign(scope)
            self._refuse_early(scope)
            if method == "HEAD":  # the server omits the body
                scope["method"] = "GET"
            await self._app(scope, receive, complete)
        except ServiceError as error:
            await error.response()(scope, receive, complete)
        except Exception:
            log.exception("%s %s failed", method, scope["path"])
            if started:
                raise
            await internal().response()(scope, receive, complete)

    def _refuse_foreign(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._local and _split(f"//{host}").hostname not in _LOCAL_HOSTS:  # against DNS rebinding
            message = "This server accepts requests only under the names of this machine, such as 127.0.0.1."
            raise ServiceError(400, "wrong_host", message)
        if self._local_clients and not _is_loopback(scope.get("client")):
            message = "This server has no token and therefore accepts requests from its own machine only."
            raise ServiceError(403, "foreign_client", message)
        # Forms on the pages of other sites can be sent anywhere.
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None:
            foreign = site not in ("same-origin", "none")
        else:
            foreign = origin is not None and _split(origin).netloc.lower() != host.lower()
        if foreign and scope["method"] not in _SAFE_METHODS:
            message = "This server does not accept requests from the pages of other sites."
            raise ServiceError(403, "foreign_origin", message)


def _with_plain_path(scope: Scope) -> Scope:
    """Return a copy of the scope; a whole URL in the request line is reduced to its path."""
    path = scope["path"]
    if not path.startswith(("http://", "https://")):
        return dict(scope)
    url = _split(path)
    headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
    host = (b"host", url.netloc.encode("utf-8", "replace"))  # which takes precedence over the header
    plain = url.path or "/"
    return {**scope, "path": plain, "raw_path": plain.encode("utf-8", "replace"), "headers": [host, *headers]}


def _is_loopback(client: tuple[str, int] | None) -> bool:
    """Whether a client is on this machine; one without an address is connected by a Unix socket."""
    if client is None:
        return True
    try:
        return ip_address(client[0]).is_loopback
    except ValueError:
        return False


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


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
