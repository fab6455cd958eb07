from __future__ import annotations

import statistics

import pytest

from aanet.evaluation.timing import Timing, time_interleaved


def test_contenders_take_turns_after_a_warm_up() -> None:
    order: list[str] = []
    timings = time_interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=3)
    assert order == ["a", "b"] * 4
    assert [len(timing.seconds) for timing in timings.values()] == [3, 3]


def test_the_observer_hears_of_every_run() -> None:
    heard: list[str] = []
    time_interleaved({"a": int, "b": int}, rounds=2, observe=heard.append)
    assert heard == ["a", "b"] * 3


@pytest.mark.parametrize("count", [1, 2, 5, 10])
def test_percentiles_are_those_of_the_statistics_module(count: int) -> None:
    seconds = tuple(float((7 * i) % 11) for i in range(count))
    timing = Timing(seconds)
    assert timing.median == statistics.median(seconds)
    assert timing.percentile(50) == pytest.approx(statistics.median(seconds))
    assert timing.percentile(0) == min(seconds)
    assert timing.percentile(100) == max(seconds)
    if count > 1:
        quartiles = statistics.quantiles(seconds, n=4, method="inclusive")
        assert timing.percentile(25) == pytest.approx(quartiles[0])
