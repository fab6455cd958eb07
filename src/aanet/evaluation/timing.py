"""Comparable running times: interleaved runs after a warm-up, summarized by median and percentiles."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Timing:
    """The running times of one candidate in seconds."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of all runs."""
        return statistics.median(self.seconds)

    def percentile(self, percent: float) -> float:
        """A percentile of all runs, linearly interpolated."""
        return float(np.percentile(self.seconds, percent))


def time_interleaved(
    candidates: Mapping[str, Callable[[], object]],
    rounds: int,
    observe: Callable[[str], None] = lambda _: None,
) -> dict[str, Timing]:
    """Run every candidate once to warm up, then run all candidates in sequence, `rounds` times.

    The speed of a shared machine varies.  Interleaving exposes every candidate to the same variation, so
    that ratios are reliable even if absolute times are not.

    Args:
        candidates: What to run, by name.
        rounds: Number of timed runs of each.
        observe: Called with the name after every run, including the warm-up.
    """
    for name, run in candidates.items():
        run()
        observe(name)
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, run in candidates.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
            observe(name)
    return {name: Timing(tuple(values)) for name, values in seconds.items()}
