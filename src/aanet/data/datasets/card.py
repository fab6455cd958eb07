"""The card of a dataset: its files, splits, evaluation protocol and submission format.

Cards are plain data and import nothing heavy, because the command line lists the datasets in its help.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from aanet.data.layout import Group

Average = Literal["images", "pixels"]


@dataclass(frozen=True)
class Protocol:
    """The evaluation protocol of a benchmark; `aanet.evaluation` computes the metrics."""

    split: str  # evaluated by default
    metrics: tuple[str, ...]  # keys of `aanet.evaluation.METRICS`, in the order of the table
    average: Average
    description: str  # how the scores compare with the official ones
    max_disparity: float | None = None  # px: ground truth at or above it is not scored


@dataclass(frozen=True)
class SubmissionFormat:
    """The zip file that a benchmark's server accepts."""

    splits: tuple[str, ...]
    disparity: str  # file name within the zip, with the fields {folder}, {key} and {method}
    time: str | None = None  # file name of the running time, with the same fields
    time_text: str = "{seconds:.4f}"
    dense: bool = True  # whether holes must be filled; KITTI's server does that itself, by the same rule


@dataclass(frozen=True)
class DatasetCard:
    """Everything that other parts of the package need to know about a dataset."""

    name: str  # on the command line and in recipes
    title: str
    source: str  # where to get it
    groups: tuple[Group, ...]
    splits: tuple[str, ...]  # the first is the default
    protocol: Protocol
    submission: SubmissionFormat | None = None

    @property
    def reference(self) -> str:
        """The name with the address, if the dataset can be downloaded, for error messages."""
        return f"{self.name} ({self.source})" if "://" in self.source else self.name
