"""The settings of a server."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from aanet.errors import InputError

MEGABYTE = 1_000_000
ANY_ORIGIN = "*"
# First segments of the server's own paths; after such a prefix, they could not be told from it.
OWN_SEGMENTS = ("api", "docs", "static", "page", "healthz", "readyz", "metrics", "favicon.ico")

_NAME = re.compile(r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)*")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


@dataclass(frozen=True)
class Settings:
    """Models, access control and limits of a server.

    Attributes:
        models: Names of bundled weights, weights files, or "sgbm"; the first is the default. If empty, all
            bundled weights and SGBM.
        network_spec: How to feed and read those of the models that are foreign networks; see `StereoMatcher`.
        token: The token that every request must send (`Authorization: Bearer …`); None for no token.
        allowed_hosts: Host names for which requests are accepted, in addition to those of this machine;
            *.example.com stands for all names in that domain. If empty, `local` decides.
        allow_origins: Origins of other sites whose pages may use the API, such as https://app.example.com; *
            for all of them, which requires a token.
        root_path: The path under which a reverse proxy offers the server, such as /stereo. The proxy may
            remove it from the requests or not.
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
    allowed_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    root_path: str = ""
    max_pixels: int = 8_000_000
    max_upload_bytes: int = 64 * MEGABYTE
    queue: int = 8
    timeout: float = 120.0
    local: bool = True
    local_clients: bool = False
    open_at_once: bool = True
    isolate: bool = True

    def __post_init__(self) -> None:
        """Check and normalize what a user has written."""
        object.__setattr__(self, "allowed_hosts", tuple(map(host_name, self.allowed_hosts)))
        object.__setattr__(self, "allow_origins", tuple(map(origin_of, self.allow_origins)))
        object.__setattr__(self, "root_path", path_prefix(self.root_path))
        if ANY_ORIGIN in self.allow_origins and self.token is None:
            raise InputError("Pages of every site (origin *) may use a server only if it has a token.")


def host_name(text: str) -> str:
    """Return a host name, an IP address, or *.DOMAIN in the form in which they are compared."""
    name = text.strip().lower().strip("[]")
    if not _NAME.fullmatch(name) and not _is_address(name):
        raise InputError(
            f"{text[:80]!r} is not a host name; write it without scheme, port and path, as in "
            "stereo.example.com or *.example.com."
        )
    return name


def origin_of(text: str) -> str:
    """Return an origin as browsers send it, or *."""
    if text.strip() == ANY_ORIGIN:
        return ANY_ORIGIN
    try:
        parts = urlsplit(text.strip().lower().rstrip("/"))
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        parts, port = urlsplit(""), ""
    name = parts.hostname or ""
    whole = f"[{name}]" if ":" in name else name
    known = parts.scheme in _DEFAULT_PORTS and (_NAME.fullmatch(name) or _is_address(name))
    if not known or "*" in name or f"{parts.scheme}://{whole}{port}" != parts.geturl():
        raise InputError(
            f"{text[:80]!r} is not an origin; write scheme, host and port without a path, as in "
            "https://app.example.com or http://localhost:3000."
        )
    return f"{parts.scheme}://{whole}{port.removesuffix(_DEFAULT_PORTS[parts.scheme])}"


def path_prefix(text: str) -> str:
    """Return a path without a slash at its end, empty for the root."""
    prefix = text.strip().rstrip("/")
    if not _PREFIX.fullmatch(prefix) or {".", ".."} & set(prefix.split("/")):
        raise InputError(f"{text[:80]!r} is not the path of a server; write it as in /stereo.")
    if prefix and prefix.split("/")[1] in OWN_SEGMENTS:
        own = ", ".join(f"/{each}" for each in OWN_SEGMENTS)
        raise InputError(
            f"The path {prefix} begins with one of the server's own ({own}); choose another one."
        )
    return prefix


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
