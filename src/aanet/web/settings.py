"""The settings of a server."""

from __future__ import annotations

from dataclasses import dataclass

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Settings:
    """Models, access control and limits of a server.

    Attributes:
        models: Names of bundled weights, weights files, or "sgbm"; the first is the default. If empty, all
            bundled weights and SGBM.
        network_spec: How to feed and read those of the models that are foreign networks; see `StereoMatcher`.
        token: The token that every request must send (`Authorization: Bearer …`); None for no token.
        max_pixels: Maximum number of pixels of an image at the scale at which it is matched.
        max_upload_bytes: Maximum size of a request.
        queue: Maximum number of requests that wait for a matcher while it runs another one.
        timeout: Maximum seconds from the first byte of a request to the last byte of its response.
        local: Whether to accept only requests whose host is this machine.
        local_clients: Whether to accept only clients on this machine, for a server that does not choose
            itself which address it listens on.
        open_at_once: Whether the default matcher is open before the first request.
        isolate: Whether each matcher runs in a child process, so that it can be stopped and may crash.
    """

    models: tuple[str, ...] = ()
    network_spec: str | None = None
    token: str | None = None
    max_pixels: int = 8_000_000
    max_upload_bytes: int = 64 * MEGABYTE
    queue: int = 8
    timeout: float = 120.0
    local: bool = True
    local_clients: bool = False
    open_at_once: bool = True
    isolate: bool = True
