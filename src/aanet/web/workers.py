"""A bounded queue in front of one thread: when it is full, requests are refused."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from aanet.web.errors import ServiceError, busy

T = TypeVar("T")


class Worker:
    """One thread, one piece of work at a time, and room for `waiting` more."""

    def __init__(self, waiting: int) -> None:
        self._limit = 1 + waiting
        self._slots: set[Slot] = set()
        self._closed = False
        self.turn = asyncio.Lock()  # fair: whoever waits longest is next
        self.thread = ThreadPoolExecutor(1, "matcher")

    @property
    def taken(self) -> int:
        """How many requests have a slot: the one that is worked on, and those behind it."""
        return len(self._slots)

    @contextlib.contextmanager
    def slot(self, retry_after: int) -> Iterator[Slot]:
        """Take a slot, or be refused at once.

        A slot is held from before the upload is read until the response is sent, so that slots bound the
        memory; after a client has left, it is held for as long as the thread still works for it.
        """
        self.require_open(retry_after)
        if self.taken >= self._limit:
            raise busy("full", f"All {self._limit} slots of this matcher are taken.", retry_after)
        slot = Slot(self, retry_after)
        self._slots.add(slot)
        try:
            yield slot
        finally:
            slot.abandon(lambda: self._slots.discard(slot))

    def require_open(self, retry_after: int) -> None:
        """Refuse when the server is about to stop."""
        if self._closed:
            raise stopping(retry_after)

    def close(self) -> None:
        """Finish what runs, refuse what waits and what comes."""
        self._closed = True
        for slot in self._slots:
            slot.give_up_turn()


class Slot:
    """The right to have one piece of work done."""

    def __init__(self, worker: Worker, retry_after: int) -> None:
        self._worker = worker
        self._retry_after = retry_after
        self._task: asyncio.Task[Any] | None = None
        self._running = False

    def submit(self, work: Callable[[], T]) -> asyncio.Task[T]:
        """Wait for the turn, then run `work` in the worker's thread."""
        self._worker.require_open(self._retry_after)
        self._task = task = asyncio.create_task(self._take_turn(work))
        return task

    def give_up_turn(self) -> None:
        """Cancel work that has not begun; what has begun cannot be interrupted."""
        if self._task is not None and not self._running:
            self._task.cancel()

    def abandon(self, free: Callable[[], None]) -> None:
        """Nobody waits for the response any more: call `free` as soon as the thread does not work for it."""
        self.give_up_turn()
        if self._task is None or self._task.done() or not self._running:
            free()
        else:
            self._task.add_done_callback(lambda _: free())

    async def _take_turn(self, work: Callable[[], T]) -> T:
        async with self._worker.turn:
            self._running = True
            return await asyncio.get_running_loop().run_in_executor(self._worker.thread, work)


def stopping(retry_after: int) -> ServiceError:
    """503 of a server that was told to stop."""
    return busy("stopping", "The server is stopping and takes no more work.", retry_after)
