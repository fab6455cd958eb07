"""The queue: bounded, fair, and free again when somebody leaves."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack
from functools import partial

import pytest

from aanet.web.errors import ServiceError
from aanet.web.workers import Worker


def test_full_is_refused_and_a_leaving_client_frees_its_place() -> None:
    async def scenario() -> None:
        worker, finish = Worker(waiting=1), threading.Event()
        with worker.slot(1) as first:
            running = first.submit(finish.wait)
            await asyncio.sleep(0.05)
            with worker.slot(1) as second:
                waiting = second.submit(lambda: "never")
                await asyncio.sleep(0.01)
                with pytest.raises(ServiceError) as refusal, worker.slot(7):
                    pass
                assert refusal.value.status == 503
                assert refusal.value.headers == {"Retry-After": "7"}
            assert worker.taken == 1  # the second has left while it waited
            await asyncio.sleep(0)
            assert waiting.cancelled()
            with worker.slot(1) as third:
                last = third.submit(lambda: "third")
                finish.set()
                assert await last == "third"
            assert await running
        assert worker.taken == 0

    asyncio.run(scenario())


def test_a_place_is_held_while_the_thread_works_for_somebody_who_left() -> None:
    async def scenario() -> None:
        worker, finish = Worker(waiting=0), threading.Event()
        with worker.slot(1) as slot:
            task = slot.submit(finish.wait)
            await asyncio.sleep(0.05)
        assert worker.taken == 1
        with pytest.raises(ServiceError), worker.slot(1):
            pass
        finish.set()
        await task
        await asyncio.sleep(0)
        assert worker.taken == 0

    asyncio.run(scenario())


def test_work_is_done_in_the_order_of_its_coming() -> None:
    async def scenario() -> list[int]:
        worker, done = Worker(waiting=9), []
        with ExitStack() as stack:
            slots = [stack.enter_context(worker.slot(1)) for _ in range(5)]
            await asyncio.gather(*(each.submit(partial(done.append, i)) for i, each in enumerate(slots)))
        return done

    assert asyncio.run(scenario()) == [0, 1, 2, 3, 4]


def test_several_run_at_once_and_the_queue_comes_on_top() -> None:
    async def scenario() -> None:
        worker, together = Worker(waiting=1, at_once=2), threading.Barrier(3)
        with worker.slot(1) as first, worker.slot(1) as second, worker.slot(1) as third:
            running = [each.submit(partial(together.wait, 30)) for each in (first, second)]
            waiting = third.submit(lambda: "third")
            await asyncio.sleep(0.05)
            assert not waiting.done()
            with pytest.raises(ServiceError, match="All 3 slots"), worker.slot(1):
                pass
            together.wait(30)  # passes only if both run
            await asyncio.gather(*running)
            assert await waiting == "third"

    asyncio.run(scenario())


def test_closing_finishes_what_runs_and_refuses_the_rest() -> None:
    async def scenario() -> None:
        worker, finish = Worker(waiting=3), threading.Event()
        with worker.slot(1) as first, worker.slot(1) as second, worker.slot(1) as uploading:
            running, waiting = first.submit(finish.wait), second.submit(lambda: None)
            await asyncio.sleep(0.05)
            worker.close()
            finish.set()
            assert await running
            with pytest.raises(asyncio.CancelledError):
                await waiting
            with pytest.raises(ServiceError, match="stopping"):
                uploading.submit(lambda: None)
        with pytest.raises(ServiceError, match="stopping"), worker.slot(1):
            pass

    asyncio.run(scenario())
