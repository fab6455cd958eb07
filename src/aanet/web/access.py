"""Who may use a server: host names, clients, and the pages of other sites (CORS)."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from aanet.web.documentation import ANSWER_HEADERS
from aanet.web.errors import ServiceError
from aanet.web.settings import ANY_ORIGIN, Settings

_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, X-Request-ID",
    "Access-Control-Max-Age": "600",
}
_EXPOSED = ", ".join((*ANSWER_HEADERS, "Retry-After")).encode()


class Access:
    """Decides by the headers of a request whether it is refused, and which pages may read the response."""

    def __init__(self, settings: Settings) -> None:
        self._any_host = not settings.local and not settings.allowed_hosts
        self._hosts = {*_LOCAL_HOSTS, *(each for each in settings.allowed_hosts if each[0] != "*")}
        self._domains = tuple(each[1:] for each in settings.allowed_hosts if each[0] == "*")
        self._local_clients = settings.local_clients
        self._origins = settings.allow_origins

    def check(self, scope: Scope) -> None:
        """Refuse a request with another host name, of another machine, or from the page of another site."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._any_host and not self._is_ours(_split(f"//{host}").hostname or ""):
            # Against DNS rebinding, with which a page of another site reaches this server.
            message = "This server does not accept requests for this host name (see --allowed-host)."
            raise ServiceError(400, "wrong_host", message)
        if self._local_clients and not _is_loopback(scope.get("client")):
            message = "This server has no token and therefore accepts requests from its own machine only."
            raise ServiceError(403, "foreign_client", message)
        if scope["method"] not in _SAFE_METHODS and self._is_foreign(headers, host):
            raise _foreign_origin()

    def preflight(self, scope: Scope) -> Response | None:
        """Return the response to a browser that asks whether a page of another site may send a request.

        None if the request is another one, or if no other origin is allowed.
        """
        headers = Headers(scope=scope)
        asks = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
        if not asks or not self._origins:
            return None
        if not self._is_allowed(headers.get("origin", "")):
            raise _foreign_origin()
        return Response(status_code=204, headers=_PREFLIGHT)

    def cors_headers(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        """Return the headers with which a browser lets the page of an allowed origin read the response."""
        if not self._origins:
            return []
        origin = Headers(scope=scope).get("origin", "")
        added = [(b"vary", b"Origin")]  # a cache must not give one origin the response to another
        if self._is_allowed(origin):
            added += [
                (b"access-control-allow-origin", origin.encode("latin-1")),
                (b"access-control-expose-headers", _EXPOSED),
            ]
        return added

    def _is_ours(self, name: str) -> bool:
        return name in self._hosts or name.endswith(self._domains)

    def _is_allowed(self, origin: str) -> bool:
        return bool(origin) and (origin.lower() in self._origins or ANY_ORIGIN in self._origins)

    def _is_foreign(self, headers: Headers, host: str) -> bool:
        """Whether a browser says that the page of another site has sent the request, as forms can be."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if origin is not None and self._is_allowed(origin):
            return False
        if site is not None:
            return site not in ("same-origin", "none")
        return origin is not None and _split(origin).netloc.lower() != host.lower()


def _foreign_origin() -> ServiceError:
    message = "This server does not accept requests from the pages of other sites (see --allow-origin)."
    return ServiceError(403, "foreign_origin", message)


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
