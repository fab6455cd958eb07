"""A weighted mixture of datasets."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from aanet.errors import InputError

if TYPE_CHECKING:
    from aanet.data.sample import StereoSample


class PairSource(Protocol):
    """Any sequence of samples with a name, such as a dataset on disk or the synthetic world."""

    name: str

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> StereoSample: ...


class Mixed:
    """A weighted mixture, long enough that every sample of every dataset occurs at least once.

    With weights 3 and 1, three quarters of the samples come from the first dataset; datasets that are too
    short for their weight are repeated. Without weights the datasets are concatenated. Samples are not
    shuffled: one dataset follows the other.
    """

    def __init__(self, datasets: Sequence[PairSource], weights: Sequence[float] | None = None) -> None:
        lengths = [len(dataset) for dataset in datasets]
        if not lengths or min(lengths) == 0:
            raise InputError("A mixture needs at least one dataset and must not contain empty ones.")
        weights = lengths if weights is None else weights
        if len(weights) != len(lengths) or not all(0 < weight < float("inf") for weight in weights):
            raise InputError(
                f"Expected {len(lengths)} positive weights, one for each dataset; got {list(weights)}."
            )
        self.datasets = list(datasets)
        self.name = "+".join(dataset.name for dataset in datasets)
        # The dataset with the most samples per weight is used once; the others are repeated to match.
        passes = max(length / weight for length, weight in zip(lengths, weights, strict=True))
        self.counts = [round(passes * weight) for weight in weights]
        self._ends = list(itertools.accumulate(self.counts))

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, index: int) -> StereoSample:
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index %= len(self)
        which = bisect_right(self._ends, index)
        dataset = self.datasets[which]
        return dataset[(index - (self._ends[which] - self.counts[which])) % len(dataset)]
