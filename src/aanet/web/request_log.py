"""The log of requests: one line for each."""

from __future__ import annotations

import logging
import re
import time
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.types import Message, Scope

from aanet.web.paths import API_PREFIX, route_path

log = logging.getLogger("aanet.web.requests")

_MAX_LENGTH = 200  # characters of a path
_REQUEST_ID = re.compile(r"[\w.:+/=@-]{1,100}", re.ASCII)
# What probes, Prometheus and the page ask for again and again; logged as DEBUG if it succeeds.
_PROBES = ("/healthz", "/readyz", "/metrics")
_FREQUENT = (*_PROBES, *(API_PREFIX + probe for probe in _PROBES), f"{API_PREFIX}/live/view")
_STATIC = ("/static/", "/page/", "/favicon.ico")


class RequestEntry:
    """A request and what is known about its response, for the log.

    Neither the query nor any header but `X-Request-ID` is logged, because they may contain secrets. What a
    client chooses cannot begin a new line or look like another field.

    Attributes:
        status: The status of the response; None before it has begun.
    """

    def __init__(self, scope: Scope) -> None:
        self._start = time.perf_counter()
        self._method, self._path, self._route = scope["method"], scope["path"], route_path(scope)
        self._id = Headers(scope=scope).get("x-request-id", "")
        self._size = 0
        self.status: int | None = None

    @property
    def request(self) -> str:
        """Method and path, in one line of printable ASCII characters."""
        return " ".join(
            quote(each, safe="/:@!$&'()*+,;=", errors="replace")[:_MAX_LENGTH]
            for each in (self._method, self._path)
        )

    def observe(self, message: Message) -> None:
        """Take note of a message of the response."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body" and self._method != "HEAD":
            self._size += len(message.get("body", b""))

    def write(self) -> None:
        """Write the line, when the response has been sent."""
        milliseconds = 1000 * (time.perf_counter() - self._start)
        status = "-" if self.status is None else self.status
        identifier = f" id={self._id}" if _REQUEST_ID.fullmatch(self._id) else ""
        log.log(
            self._level(),
            "%s %s %.1f ms %d bytes%s",
            *(self.request, status, milliseconds, self._size, identifier),
        )

    def _level(self) -> int:
        frequent = self._route in _FREQUENT or self._route.startswith(_STATIC)
        return logging.DEBUG if frequent and self.status is not None and self.status < 400 else logging.INFO


def log_refusal(status: int, size: int) -> None:
    """Write the line of something that could not be read as a request."""
    log.info("- - %d 0.0 ms %d bytes", status, size)
