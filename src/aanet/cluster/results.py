"""What comes back from workers: tables, or errors as the process that started them reports them."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from aanet.errors import AanetError, UnsupportedError

if TYPE_CHECKING:
    from ray.data import Dataset

_FATAL = "fatal"  # the only column of a table that reports an error
Worker = TypeVar("Worker")


def tables(dataset: Dataset) -> Iterator[Any]:
    """Execute a dataset; its blocks come as Arrow tables when they are finished, and none waits in memory."""
    import ray

    try:
        blocks: Iterable[Any] = dataset.iter_batches(
            batch_size=None, batch_format="pyarrow", prefetch_batches=0
        )
        for table in blocks:
            if table.column_names == [_FATAL]:
                raise pickle.loads(table.column(_FATAL)[0].as_py())  # of our own workers
            yield table
    except ray.exceptions.RayError as error:
        raise plain_error(error) from error


def reporting_errors(call: Callable[[Worker, Any], Any]) -> Callable[[Worker, Any], Any]:
    """Return errors that users understand as a table; of an exception, Ray Data would keep the text only."""

    @functools.wraps(call)
    def reporting(worker: Worker, given: Any) -> Any:
        import pyarrow as pa

        try:
            return call(worker, given)
        except AanetError as error:
            error.__cause__ = error.__context__ = None
            return pa.table({_FATAL: [pickle.dumps(error)]})

    return reporting


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
