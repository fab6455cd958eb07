"""Running the application in uvicorn with a graceful shutdown."""

from __future__ import annotations

import contextlib
import gc
import signal
import socket
from collections.abc import Callable

import uvicorn

from aanet.errors import InputError
from aanet.web.app import create_app
from aanet.web.live import LiveSession
from aanet.web.logs import start_log
from aanet.web.protocol import LimitedProtocol
from aanet.web.service import Service
from aanet.web.settings import Settings


def run(
    settings: Settings,
    host: str,
    port: int,
    announce: Callable[[str], None],
    open_live: Callable[[], LiveSession] | None = None,
    log_level: str = "warning",
) -> None:
    """Serve until a signal arrives.

    Args:
        settings: Limits and access control.
        host: The address to listen on.
        port: The port; 0 selects a free one.
        announce: Called with the URL once the server accepts requests.
        open_live: Opens a live session, which is shown instead of a form for pairs.
        log_level: Least severity of this package's messages in the log, such as "info"; requests are
            logged as info.
    """
    start_log(log_level)
    with contextlib.ExitStack() as held:
        listening = held.enter_context(_listen(host, port))
        live = None if open_live is None else held.enter_context(contextlib.closing(open_live()))
        app = create_app(settings, live)
        bound = listening.getsockname()[1]
        config = uvicorn.Config(
            app,
            http=LimitedProtocol,
            ws="none",
            log_config=None,
            log_level="error",  # strangers must not fill the log with warnings about their requests
            access_log=False,  # see `request_log`
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=int(settings.timeout) + 5,
        )
        # Later collections skip what stays for ever, which shortens the delays of probes under a flood.
        gc.collect()
        gc.freeze()
        server = _Server(config, app.state.service, lambda: announce(url_of(host, bound)))
        server.run(sockets=[listening])


def url_of(host: str, port: int) -> str:
    """Return a URL that a browser on this machine can open."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{reachable}]:{port}/" if ":" in reachable else f"http://{reachable}:{port}/"


class _Server(uvicorn.Server):
    """Finishes running requests and refuses all others when it is stopped."""

    def __init__(self, config: uvicorn.Config, service: Service, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._service = service
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn."""
        await super().startup(sockets)
        # A closed terminal stops the server as SIGTERM does, unless it was started with nohup.
        hangup = getattr(signal, "SIGHUP", None)  # not on Windows
        if hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN:
            signal.signal(hangup, self.handle_exit)
        self._started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn, which closes the port first and then waits for pending responses."""
        self._service.stop()
        await super().shutdown(sockets)
        self._service.close()  # here, because uvicorn then repeats the signal that has stopped it


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=256)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"Cannot listen on {host}, port {port}: {reason}; choose another --port.") from error
