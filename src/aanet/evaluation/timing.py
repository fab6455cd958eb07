"""Times that can be compared: interleaved in one run, after a warm-up, as medians and percentiles."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """The seconds that one contender took, run by run."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle of all runs."""
        return statistics.median(self.seconds)

    def percentile(self, percent: float) -> float:
        """The time that `percent` of the runs stay below, between the two nearest ones."""
        ordered = sorted(self.seconds)
        place = percent / 100 * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def time_interleaved(
    contenders: Mapping[str, Callable[[], object]],
    rounds: int,
    observe: Callable[[str], None] = lambda _: None,
) -> dict[str, Timing]:
    """Run every contender once to warm up, then all of them in turn, `rounds` times.

    A machine slows down and speeds up while others use it. Turn by turn that hits every contender alike, so
    that ratios hold where the seconds do not.

    Args:
        contenders: What to run, by name.
        rounds: Timed runs of each.
        observe: Called with the name after every run, the warm-up included.
    """
    for name, run in contenders.items():
        run()
        observe(name)
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
            observe(name)
    return {name: Timing(tuple(values)) for name, values in seconds.items()}
