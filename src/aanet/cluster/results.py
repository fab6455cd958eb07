"""What comes back from workers: tables, or errors as the process that started them reports them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from aanet.errors import AanetError, UnsupportedError

if TYPE_CHECKING:
    from ray.data import Dataset


def tables(dataset: Dataset) -> Iterator[Any]:
    """Execute a dataset; its blocks come as Arrow tables when they are finished, and none waits in memory."""
    import ray

    try:
        yield from dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0)
    except ray.exceptions.RayError as error:
        raise plain_error(error) from error


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
