"""`aanet serve`: the web page and the HTTP API."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Annotated
from urllib.parse import quote

import typer

from aanet.cli.options import ANY_MODEL, LOCALHOST, Host, NetworkSpec, Port, Token
from aanet.errors import InputError

_LOOPBACK = (LOCALHOST, "localhost", "::1")


def serve(
    host: Host = LOCALHOST,
    port: Port = 8000,
    token: Token = None,
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
) -> None:
    """Serve a web page for stereo matching and an HTTP API.

    The addresses of both are printed when the server is ready.

    Example: aanet serve --port 8080 --model aanet
    """
    local = is_local(host, token)
    # In addition to our own check of the image header; OpenCV reads the variable once, when it is loaded.
    os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(max_pixels))
    from aanet.web.server import run
    from aanet.web.settings import Settings

    settings = Settings(
        models=tuple(model or ()),
        network_spec=network_spec,
        token=token or None,
        max_pixels=max_pixels,
        max_upload_bytes=round(max_upload_mb * 1e6),
        queue=queue,
        timeout=timeout,
        local=local,
    )
    with contextlib.suppress(KeyboardInterrupt):
        run(settings, host, port, lambda address: announce(address, token))


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
    typer.echo(f"HTTP API: {address}api/v1/  (Ctrl+C stops the server)")
    sys.stdout.flush()
