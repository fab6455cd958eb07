"""Threads with a bounded queue, which refuses requests when it is full."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from aanet.web.errors import busy, stopping

T = TypeVar("T")


class Worker:
    """One or more threads that run one task each at a time, with a queue for `waiting` more.

    Attributes:
        at_once: The number of threads.
        slots: The maximum number of requests, running and waiting.
    """

    def __init__(self, waiting: int, at_once: int = 1) -> None:
        self.at_once = at_once
        self.slots = at_once + waiting
        self._slots: set[Slot] = set()
        self._closed = False
        self.turn = asyncio.Semaphore(at_once)  # first come, first served
        self.threads = ThreadPoolExecutor(at_once, "matcher")

    @property
    def taken(self) -> int:
        """The number of requests that have a slot, running or waiting."""
        return len(self._slots)

    @contextlib.contextmanager
    def slot(self, retry_after: int) -> Iterator[Slot]:
        """Take a slot, or raise an error if none is free.

        A slot is held from before the upload is read until the response has been sent, so that the number of
        slots bounds the memory. If a client disconnects, its slot is held until the thread has finished.
        """
        self.require_free(retry_after)
        slot = Slot(self)
        self._slots.add(slot)
        try:
            yield slot
        finally:
            slot.release(lambda: self._slots.discard(slot))

    def require_free(self, retry_after: int) -> None:
        """Raise an error if no slot is free."""
        self.require_open()
        if self.taken >= self.slots:
            raise busy("full", f"All {self.slots} slots of this matcher are taken.", retry_after)

    def require_open(self) -> None:
        """Raise an error if the server is stopping."""
        if self._closed:
            raise stopping()

    def close(self) -> None:
        """Finish the running tasks and refuse all others."""
        self._closed = True
        for slot in self._slots:
            slot.cancel_waiting()


class Slot:
    """A place in the queue of a worker, for one task."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._task: asyncio.Task[Any] | None = None
        self._running = False

    def submit(self, work: Callable[[], T]) -> asyncio.Task[T]:
        """Run `work` in a thread of the worker when it is this slot's turn."""
        self._worker.require_open()
        self._task = task = asyncio.create_task(self._take_turn(work))
        return task

    def cancel_waiting(self) -> None:
        """Cancel the task if it has not started; a running task cannot be interrupted."""
        if self._task is not None and not self._running:
            self._task.cancel()

    def release(self, free: Callable[[], None]) -> None:
        """Call `free` as soon as the thread no longer runs the task."""
        self.cancel_waiting()
        if self._task is None or self._task.done() or not self._running:
            free()
        else:

            def finish(task: asyncio.Task[Any]) -> None:
                if not task.cancelled():
                    task.exception()  # which nobody waits for any more
                free()

            self._task.add_done_callback(finish)

    async def _take_turn(self, work: Callable[[], T]) -> T:
        async with self._worker.turn:
            self._running = True
            return await asyncio.get_running_loop().run_in_executor(self._worker.threads, work)
