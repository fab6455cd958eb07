"""`aanet serve`: the web page and the HTTP API."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import webbrowser
from typing import Annotated
from urllib.parse import quote

import typer

from aanet.cli.console import status
from aanet.cli.options import ANY_MODEL, LOCALHOST, Host, NetworkSpec, Port, Token
from aanet.errors import InputError

_LOOPBACK = (LOCALHOST, "localhost", "::1")
_LOG_LEVELS = ("debug", "info", "warning", "error")
_PROXY = "Behind a proxy and for other sites"


def serve(
    host: Host = LOCALHOST,
    port: Port = 8000,
    token: Token = None,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser when the server is ready.")
    ] = False,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            help=f"{ANY_MODEL} May be repeated; the first one is the default.",
            show_default="all bundled models, and sgbm",
        ),
    ] = None,
    network_spec: NetworkSpec = None,
    max_pixels: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of pixels in an image.")
    ] = 8_000_000,
    max_upload_mb: Annotated[
        float, typer.Option(metavar="MB", min=0.001, help="Maximum size of a request in megabytes.")
    ] = 64.0,
    queue: Annotated[
        int, typer.Option(metavar="N", min=0, help="Maximum number of requests waiting for a matcher.")
    ] = 8,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="Maximum duration of a request in seconds.")
    ] = 120.0,
    log_level: Annotated[
        str,
        typer.Option(
            metavar="|".join(_LOG_LEVELS),
            help="Least severity of log messages. info has one line per request, debug also lines for "
            "probes, metrics and files of the page.",
        ),
    ] = "info",
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Also accept requests for this host name, or for all names in a domain as in "
            "*.example.com. May be repeated.",
            show_default="only the names of this machine; with another --host, every name",
            rich_help_panel=_PROXY,
        ),
    ] = None,
    root_path: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="Path under which a proxy offers the server, as in /stereo. It does not matter whether the "
            "proxy removes it from the requests.",
            show_default="/",
            rich_help_panel=_PROXY,
        ),
    ] = "",
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="Let the pages of another site use the API (CORS), as in https://app.example.com, or with a "
            "token those of every site (*). May be repeated.",
            show_default="none",
            rich_help_panel=_PROXY,
        ),
    ] = None,
) -> None:
    """Serve a web page for stereo matching and an HTTP API.

    The addresses of both are printed when the server is ready. Bundled models, your own weights, exported
    networks and networks of other programs can be served, several at a time.

    Example: aanet serve --open --port 8080 --model aanet
    """
    local = is_local(host, token)
    if log_level not in _LOG_LEVELS:
        raise InputError(f"--log-level is {', '.join(_LOG_LEVELS)}; got {log_level[:30]!r}.")
    # In addition to our own check of the image header; OpenCV reads the variable once, when it is loaded.
    os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(max_pixels))
    from aanet.web.logs import start_log

    start_log(log_level)  # before the spinner takes stderr over and would break long lines
    with contextlib.suppress(KeyboardInterrupt), contextlib.ExitStack() as until_ready:
        until_ready.enter_context(status("Opening the default model; the first time, it is converted"))
        from aanet.web.server import run
        from aanet.web.settings import Settings

        settings = Settings(
            models=tuple(model or ()),
            network_spec=network_spec,
            token=token or None,
            allowed_hosts=tuple(allowed_host or ()),
            allow_origins=tuple(allow_origin or ()),
            root_path=root_path,
            max_pixels=max_pixels,
            max_upload_bytes=round(max_upload_mb * 1e6),
            queue=queue,
            timeout=timeout,
            local=local,
        )

        def ready(address: str) -> None:
            until_ready.close()
            announce(address, token)
            if settings.allowed_hosts and not token:
                typer.echo(_OPEN_TO_ALL, err=True)
            if open_page:
                # Without the token, which every user of this machine would see among the running programs.
                threading.Thread(target=_open_in_browser, args=(address,), daemon=True).start()

        run(settings, host, port, ready, log_level=log_level)


_OPEN_TO_ALL = (
    "There is no --token: whoever can send requests for an --allowed-host, such as everybody whom a proxy "
    "lets through, can use this server."
)


def _open_in_browser(address: str) -> None:
    """Open the page; in a thread, because browsers for terminals return when they are closed."""
    if not webbrowser.open(address):
        typer.echo(f"There is no browser to open; the page is at {address}", err=True)


def is_local(host: str, token: str | None) -> bool:
    """Whether only this machine can reach a server; refuses others to be served without a token."""
    if host not in _LOOPBACK and not token:
        raise InputError(
            f"--host {host} accepts requests from other machines and therefore requires --token; without "
            "one, anyone who reaches the port could use the server."
        )
    return host in _LOOPBACK


def announce(address: str, token: str | None) -> None:
    """Print where the server is."""
    # Browsers do not send the part after #, so the token does not appear in any log.
    page = f"{address}#token={quote(token)}" if token else address
    typer.echo(f"Web page: {page}")
    typer.echo(f"HTTP API: {address}api/v1/, described at {address}docs  (Ctrl+C stops the server)")
    sys.stdout.flush()
