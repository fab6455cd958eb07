"""The pipeline of threads keeps order, stops where it must, and overlaps."""

from __future__ import annotations

import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from aanet.errors import AanetError, ReadError, WriteError
from aanet.prediction.outcome import Done, Summary
from aanet.prediction.pipeline import Pipeline, Steps


class Record:
    """Steps on numbers that note what happened; single items can be told to fail."""

    def __init__(self, **failures: dict[int, BaseException | None]) -> None:
        self.failures = failures
        self.read: list[int] = []
        self.matched: list[int] = []
        self.saved: list[int] = []
        self.most = 0  # items in memory

    def step(self, name: str) -> Callable[..., Any]:
        def act(item: int, *_: object) -> Any:
            error = self.failures.get(name, {}).get(item)
            if error is not None:
                raise error
            getattr(self, name).append(item)
            self.most = max(self.most, len(self.read) - len(self.saved))
            return Done(str(item)) if name == "saved" else item

        return act

    @property
    def steps(self) -> Steps[int, int, int]:
        return Steps(
            self.step("read"),
            self.step("matched"),
            self.step("saved"),
            lambda item: Done(str(item), skipped=True),
            lambda item, error: Done(str(item), error=str(error)),
        )


def names(outcomes: Iterator[Done]) -> list[str]:
    return [done.name for done in outcomes]


def test_the_outcomes_come_in_order_and_few_items_are_in_memory() -> None:
    record = Record()
    with Pipeline(record.steps) as pipeline:
        assert names(pipeline.outcomes(range(500))) == [str(item) for item in range(500)]
    assert record.read == record.matched == record.saved == list(range(500))
    assert record.most <= 7


def test_the_next_item_is_read_and_the_last_one_written_while_one_is_matched() -> None:
    read, saved = ([threading.Event() for _ in range(6)] for _ in range(2))

    def match(item: int, _: int) -> int:
        assert item == 5 or read[item + 1].wait(10)
        assert item == 0 or saved[item - 1].wait(10)
        return item

    def reading(item: int) -> int:
        read[item].set()
        return item

    def saving(item: int, _: int) -> Done:
        saved[item].set()
        return Done(str(item))

    steps = Steps(reading, match, saving, lambda item: Done(str(item)), lambda item, _: Done(str(item)))
    with Pipeline(steps) as pipeline:
        assert len(names(pipeline.outcomes(range(6)))) == 6


def test_a_bad_item_is_an_outcome_at_its_place_wherever_it_fails() -> None:
    record = Record(read={1: ReadError("a")}, matched={3: AanetError("b")}, saved={4: AanetError("c")})
    with Pipeline(record.steps) as pipeline:
        outcomes = list(pipeline.outcomes(range(6)))
    assert [done.name for done in outcomes] == list("012345")
    assert [done.error for done in outcomes] == [None, "a", None, "b", "c", None]
    assert record.saved == [0, 2, 5]


def test_nothing_is_written_after_a_failure_to_write() -> None:
    record = Record(saved={3: WriteError("full")})
    seen: list[Any] = []
    with Pipeline(record.steps) as pipeline, pytest.raises(WriteError, match="full"):
        seen.extend(done.name for done in pipeline.outcomes(range(20)))
    assert seen == ["0", "1", "2"]
    assert record.saved == [0, 1, 2]


@pytest.mark.parametrize("error", [WriteError("exists"), MemoryError(), OSError(5, "broken")])
def test_an_error_of_all_comes_after_the_outcomes_before_it(error: BaseException) -> None:
    record = Record(read={5: error}, matched={2: AanetError("bad")})
    seen: list[Any] = []
    with Pipeline(record.steps) as pipeline, pytest.raises(type(error)):
        seen.extend((done.name, done.error) for done in pipeline.outcomes(range(20)))
    assert seen == [("0", None), ("1", None), ("2", "bad"), ("3", None), ("4", None)]
    assert record.saved == [0, 1, 3, 4]


def test_an_interruption_keeps_what_is_matched() -> None:
    record = Record(matched={7: KeyboardInterrupt()})
    slow = record.step("saved")

    def save(item: int, result: int) -> Done:
        time.sleep(0.01)
        done: Done = slow(item, result)
        return done

    steps = Steps(record.steps.read, record.steps.match, save, record.steps.skipped, record.steps.failed)
    seen: list[Any] = []
    with Pipeline(steps) as pipeline:
        with pytest.raises(KeyboardInterrupt):
            seen.extend(done.name for done in pipeline.outcomes(range(20)))
        seen += names(pipeline.rest())
    assert seen == list("0123456")
    assert record.saved == list(range(7))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("aanet-")]


def test_items_that_are_done_are_skipped_in_order() -> None:
    record = Record()
    steps = Steps(
        lambda item: None if item % 2 else item,
        record.steps.match,
        record.steps.save,
        record.steps.skipped,
        record.steps.failed,
    )
    with Pipeline(steps) as pipeline:
        outcomes = list(pipeline.outcomes(range(6)))
    assert [(done.name, done.skipped) for done in outcomes] == [(str(i), bool(i % 2)) for i in range(6)]
    assert record.saved == [0, 2, 4]


def test_counting_takes_no_memory() -> None:
    def measure(count: int) -> int:
        summary, steps = (
            Summary(),
            Steps[int, int, int](
                lambda item: item,
                lambda item, _: item,
                lambda item, _: Done(str(item), warnings=["x" * 1000]),
                lambda item: Done(str(item)),
                lambda item, error: Done(str(item), error=str(error)),
            ),
        )
        tracemalloc.start()
        with Pipeline(steps) as pipeline:
            for done in pipeline.outcomes(range(count)):
                summary.count(done)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert summary.matched == count
        return peak

    measure(10)
    assert measure(2000) < measure(200) + 100_000  # the warnings alone would be 1.8 MB
