"""The paths of requests: with or without the prefix under which a proxy offers the server."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.types import Scope

API_PREFIX = "/api/v1"


def route_path(scope: Scope) -> str:
    """Return the path below the prefix of the server, such as /healthz; empty for the prefix itself."""
    path: str = scope["path"]
    root = scope.get("root_path", "")
    return path[len(root) :] if path == root or path.startswith(f"{root}/") else path


def with_plain_path(scope: Scope) -> Scope:
    """Return a copy of the scope; a whole URL in the request line is reduced to its path."""
    path = scope["path"]
    if not path.startswith(("http://", "https://")):
        return dict(scope)
    try:
        url = urlsplit(path)
    except ValueError:
        url = urlsplit("")
    headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
    host = (b"host", url.netloc.encode("utf-8", "replace"))  # which takes precedence over the header
    plain = url.path or "/"
    return {**scope, "path": plain, "raw_path": plain.encode("utf-8", "replace"), "headers": [host, *headers]}


def below(prefix: str, scope: Scope) -> Scope:
    """Return a copy of the scope whose path begins with `prefix`, whether or not the proxy has removed it."""
    if not prefix:
        return scope
    route = route_path(scope)
    if route == prefix or route.startswith(f"{prefix}/"):
        route = route[len(prefix) :]
    root = prefix + scope.get("root_path", "")
    return {**scope, "root_path": root, "path": root + route}
