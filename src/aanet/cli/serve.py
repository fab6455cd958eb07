"""`aanet serve`: the page and the HTTP API on this machine."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Annotated
from urllib.parse import quote

import typer

from aanet.errors import InputError

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen at; any but this machine's own needs --token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen at; 0 takes a free one.")
    ] = 8000,
    token: Annotated[
        str | None,
        typer.Option(envvar="AANET_TOKEN", help="What every request must carry (Authorization: Bearer …)."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A network with bundled weights, a file of weights, or sgbm; again for several.  The first "
            "is the default.  [default: all bundled weights, and sgbm]"
        ),
    ] = None,
    max_pixels: Annotated[int, typer.Option(min=1, help="Pixels that one image may have.")] = 8_000_000,
    max_upload_mb: Annotated[float, typer.Option(min=0.001, help="Megabytes of one request.")] = 64.0,
    queue: Annotated[int, typer.Option(min=0, help="Requests that may wait for a matcher.")] = 8,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that one request may take.")] = 120.0,
) -> None:
    """Open a page for stereo in the browser, and the HTTP API behind it."""
    local = host in _LOOPBACK
    if not local and not token:
        raise InputError(
            f"--host {host} lets other machines in, so it needs --token: without one, anybody who reaches "
            "the port could use it."
        )
    # A second fence behind our own check of the header; OpenCV reads it once, when it is loaded.
    os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(max_pixels))
    from aanet.web.server import run
    from aanet.web.settings import Settings

    settings = Settings(
        models=tuple(model or ()),
        token=token or None,
        max_pixels=max_pixels,
        max_upload_bytes=round(max_upload_mb * 1e6),
        queue=queue,
        timeout=timeout,
        local=local,
    )
    with contextlib.suppress(KeyboardInterrupt):
        run(settings, host, port, lambda address: _announce(address, token))


def _announce(address: str, token: str | None) -> None:
    # The part after # stays in the browser: it is in no log and is not sent anywhere.
    page = f"{address}#token={quote(token)}" if token else address
    typer.echo(f"The page is at {page}")
    typer.echo(f"The API is at  {address}api/v1/  (Ctrl+C stops both)")
    sys.stdout.flush()
