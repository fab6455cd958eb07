"""One process, one port: uvicorn, told how to stop."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable

import uvicorn

from aanet.errors import InputError
from aanet.web.app import create_app
from aanet.web.service import Service
from aanet.web.settings import Settings


def run(settings: Settings, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve until a signal comes.

    Args:
        settings: Limits and rights.
        host: Address to listen at.
        port: 0 takes a free one.
        announce: Called with the address once requests are answered.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    app = create_app(settings)
    listening = _listen(host, port)
    bound = listening.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=int(settings.timeout) + 5,
    )
    server = _Server(config, app.state.service, lambda: announce(f"http://{shown}:{bound}/"))
    server.run(sockets=[listening])


class _Server(uvicorn.Server):
    """Finishes what runs and refuses the rest when it is told to stop."""

    def __init__(self, config: uvicorn.Config, service: Service, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._service = service
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn."""
        await super().startup(sockets)
        self._started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn; it closes the port first, then waits for the answers that are due."""
        self._service.stop()
        await super().shutdown(sockets)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=256)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"Cannot listen at {host}, port {port}: {reason}; choose another --port.") from error
