"""What the operator of a server decides."""

from __future__ import annotations

from dataclasses import dataclass

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Settings:
    """Limits and rights of a server; every one of them bounds memory or time.

    Attributes:
        models: Names of bundled weights, files of weights, or "sgbm"; the first is the default.  Empty: all
            bundled weights and SGBM.
        token: What every request must carry (`Authorization: Bearer …`); None asks for nothing.
        max_pixels: Of one image, times the square of the scale it is matched at.
        max_upload_bytes: Of a whole request.
        queue: How many requests may wait for a matcher while it works on another.
        timeout: Seconds from the first byte of a request to the last one of its response.
        local: Only names of this machine are accepted as the host of a request.
    """

    models: tuple[str, ...] = ()
    token: str | None = None
    max_pixels: int = 8_000_000
    max_upload_bytes: int = 64 * MEGABYTE
    queue: int = 8
    timeout: float = 120.0
    local: bool = True
