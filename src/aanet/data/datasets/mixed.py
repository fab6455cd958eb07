"""Several datasets as one, each with its share."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from aanet.data.sample import StereoSample
from aanet.errors import AanetError


class PairSource(Protocol):
    """What can be mixed: anything that counts and yields samples, the procedural world included."""

    name: str

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> StereoSample: ...


class Mixed:
    """A weighted mixture, long enough that every sample of every dataset occurs at least once.

    With weights 3 and 1, three quarters of the samples come from the first dataset; the one that would
    otherwise run out first is repeated.  Without weights the datasets are joined as they are.  The order is
    one dataset after the other: shuffling is the sampler's business.
    """

    def __init__(self, datasets: Sequence[PairSource], weights: Sequence[float] | None = None) -> None:
        lengths = [len(dataset) for dataset in datasets]
        if not lengths or min(lengths) == 0:
            raise AanetError("A mixture needs at least one dataset, and none of them empty.")
        weights = lengths if weights is None else weights
        if len(weights) != len(lengths) or not all(0 < weight < float("inf") for weight in weights):
            raise AanetError(
                f"Expected {len(lengths)} positive weights, one for each dataset; got {list(weights)}."
            )
        self.datasets = list(datasets)
        self.name = "+".join(dataset.name for dataset in datasets)
        # One pass of the dataset that is long for its weight decides how often the others are repeated.
        passes = max(length / weight for length, weight in zip(lengths, weights, strict=True))
        self.counts = [round(passes * weight) for weight in weights]
        self._ends = list(itertools.accumulate(self.counts))

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, index: int) -> StereoSample:
        dataset, position = self.locate(index)
        return dataset[position]

    def locate(self, index: int) -> tuple[PairSource, int]:
        """Return the dataset that a sample of the mixture comes from, and its place there."""
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index %= len(self)
        which = bisect_right(self._ends, index)
        dataset = self.datasets[which]
        return dataset, (index - (self._ends[which] - self.counts[which])) % len(dataset)

    def pseudo_label_path(self, index: int) -> Path:
        """Where the pseudo ground truth of a pair is written to and read from: as its own dataset says."""
        dataset, position = self.locate(index)
        path_of = getattr(dataset, "pseudo_label_path", None)
        if path_of is None:
            raise AanetError(f"{dataset.name} is not on disk, so it has no place for pseudo ground truth.")
        path: Path = path_of(position)
        return path
