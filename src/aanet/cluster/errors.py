"""Errors of workers, as the process that started them reports them."""

from __future__ import annotations

from aanet.errors import AanetError, UnsupportedError


def plain_error(error: BaseException) -> AanetError:
    """The error of a worker that a user can understand, or a sentence about it."""
    seen: list[BaseException] = []
    found: BaseException | None = error
    while found is not None and found not in seen:
        if isinstance(found, AanetError):
            return found
        seen.append(found)
        found = getattr(found, "cause", None) or found.__cause__
    words = " ".join(str(seen[-1]).split())
    return UnsupportedError(f"The work on the cluster failed: {words[-300:]}")
