"""uvicorn's HTTP protocol with time limits, a limit of connections, and error responses of our form."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from aanet.web.errors import ServiceError, busy
from aanet.web.limits import SECURITY_HEADERS
from aanet.web.request_log import log_refusal
from aanet.web.service import Service

MAX_CONNECTIONS = 256
HEADER_SECONDS = 10.0  # for the header of a request, and for the rest of an upload that was refused
_EXTRA_SECONDS = 5.0  # more than a request may take, for responses that clients do not read


class LimitedProtocol(H11Protocol):
    """Closes connections on which a request does not arrive, or its response is not read, in time."""

    _timer: asyncio.TimerHandle | None = None
    _timed: RequestResponseCycle | None = None  # the request that the timer is for; None between requests

    @property
    def _service(self) -> Service:
        return cast(Service, cast(Any, self.config.app).state.service)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See asyncio."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            self._refuse(busy("full", f"All {MAX_CONNECTIONS} connections of this server are taken.", 10))
        else:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        if not self.transport.is_closing():
            super().data_received(data)
            self._watch()

    def on_response_complete(self) -> None:
        """See uvicorn."""
        super().on_response_complete()
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """Respond to something that is not HTTP."""
        del msg
        self._refuse(ServiceError(400, "bad_request", "The request is not valid HTTP."))

    def _watch(self) -> None:
        """Start the timer anew whenever a request begins or ends."""
        current = None if self.cycle is None or self.cycle.response_complete else self.cycle
        if self.transport.is_closing() or (self._timer is not None and current is self._timed):
            return
        if self._timer is not None:
            self._timer.cancel()
        seconds = HEADER_SECONDS if current is None else self._service.settings.timeout + _EXTRA_SECONDS
        self._timed = current
        self._timer = self.loop.call_later(seconds, self.transport.abort)

    def _refuse(self, error: ServiceError) -> None:
        """Respond without the application and close the connection."""
        if self.cycle is not None:
            self.cycle.disconnected = True  # the application may still be about to respond
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):  # otherwise a response has begun
            self._service.metrics.count("", error.status)
            response = error.response()
            log_refusal(error.status, len(response.body))
            headers = [*response.raw_headers, *SECURITY_HEADERS, (b"connection", b"close")]
            to_head = self.conn.our_state is h11.SEND_RESPONSE and self.scope["method"] == "HEAD"
            for event in (
                h11.Response(status_code=error.status, headers=headers),
                h11.Data(data=b"" if to_head else bytes(response.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
