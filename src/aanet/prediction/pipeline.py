"""Reading and writing beside matching: a short pipeline of threads whose results come in order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from aanet.errors import AanetError, WriteError
from aanet.prediction.outcome import Done

Item = TypeVar("Item")
Images = TypeVar("Images")
Result = TypeVar("Result")

_AHEAD = 2  # pairs that are read before their turn
_BEHIND = 2  # results that wait to be written


@dataclass(frozen=True)
class Steps(Generic[Item, Images, Result]):
    """What happens to each item.

    Attributes:
        read: Runs in a thread; None if there is nothing to do for the item.
        match: Runs in the thread that asks for the outcomes.
        save: Runs in another thread.
        skipped: The outcome of an item with nothing to do.
        failed: The outcome of an item with an error that does not concern the others.  A failure to write
            concerns all.
    """

    read: Callable[[Item], Images | None]
    match: Callable[[Item, Images], Result]
    save: Callable[[Item, Result], Done]
    skipped: Callable[[Item], Done]
    failed: Callable[[Item, AanetError], Done]

    def one(self, item: Item) -> Done:
        """All steps of one item, in this thread; errors are raised."""
        start = time.perf_counter()
        images = self.read(item)
        done = self.skipped(item) if images is None else self.save(item, self.match(item, images))
        done.wall_seconds = time.perf_counter() - start
        return done


class Pipeline(Generic[Item, Images, Result]):
    """Reads the next items and writes the last results while one is matched.

    The outcomes come in the order of the items, and files are written in this order: if writing fails, the
    results of later items are not written. Only a few items are in memory at a time.
    """

    def __init__(self, steps: Steps[Item, Images, Result]) -> None:
        self.steps = steps
        self._reads: deque[tuple[Item, Future[tuple[Images | None, float]]]] = deque()
        self._writes: deque[Future[Done]] = deque()
        self._reader = ThreadPoolExecutor(1, "aanet-reader")
        self._writer = ThreadPoolExecutor(1, "aanet-writer")
        self._broken = False  # set by the writer: nothing more is written

    def __enter__(self) -> Pipeline[Item, Images, Result]:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.shutdown(cancel_futures=True)
        self._writer.shutdown()  # what is matched is written

    def outcomes(self, items: Iterable[Item]) -> Iterator[Done]:
        """Do everything with all items; errors that concern all of them are raised at the item's turn."""
        for item in items:
            self._reads.append((item, self._reader.submit(_timed, self.steps.read, item)))
            if len(self._reads) > _AHEAD:
                yield from self._advance()
        while self._reads:
            yield from self._advance()
        yield from self._finished(0)

    def rest(self) -> Iterator[Done]:
        """After an interruption: the outcomes of the items that were matched but not yet reported."""
        yield from self._finished(0)

    def _advance(self) -> Iterator[Done]:
        try:
            self._match_next()
        except Exception:
            yield from self._finished(0)  # earlier items, and their errors, come first
            raise
        yield from self._finished(_BEHIND)

    def _match_next(self) -> None:
        """Match the item whose turn it is, and hand its result to the writer."""
        item, reading = self._reads.popleft()
        start = time.perf_counter()
        try:
            images, seconds = reading.result()
            start = time.perf_counter() - seconds
            result = None if images is None else self.steps.match(item, images)
        except WriteError:
            raise
        except AanetError as error:
            done = self.steps.failed(item, error)
            self._writes.append(self._writer.submit(lambda: done))
            return
        self._writes.append(self._writer.submit(self._save, item, result, time.perf_counter() - start))

    def _save(self, item: Item, result: Result | None, seconds: float) -> Done:
        if self._broken:
            raise CancelledError
        start = time.perf_counter()
        try:
            done = self.steps.skipped(item) if result is None else self.steps.save(item, result)
        except BaseException as error:
            if isinstance(error, AanetError) and not isinstance(error, WriteError):
                return self.steps.failed(item, error)
            self._broken = True
            raise
        done.wall_seconds = seconds + time.perf_counter() - start
        return done

    def _finished(self, waiting: int) -> Iterator[Done]:
        """Outcomes from the front of the queue: those that are there, and until only `waiting` are left."""
        while self._writes and (len(self._writes) > waiting or self._writes[0].done()):
            future = self._writes[0]
            done = future.result()  # an interruption while waiting must not lose it
            self._writes.popleft()
            yield done


def _timed(function: Callable[[Item], Result], item: Item) -> tuple[Result, float]:
    start = time.perf_counter()
    return function(item), time.perf_counter() - start
