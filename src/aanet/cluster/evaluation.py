"""Scores of the pairs of a dataset, computed on a cluster."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aanet.cluster.prediction import Settings, open_matcher, prepare_nodes
from aanet.cluster.results import reporting_errors, tables
from aanet.cluster.session import capacity, session
from aanet.inference.options import MatchOptions

if TYPE_CHECKING:
    import pyarrow

    from aanet.evaluation.evaluate import PairResult
    from aanet.typing import FloatMap

_PAIRS_PER_TASK = 4


@dataclass(frozen=True)
class ScoringWork:
    """What every worker does.

    Attributes:
        dataset: Name, folder and split of the dataset, which all nodes reach.
        dataset_options: Its other arguments.
        matcher: The arguments of `StereoMatcher` but for the threads.
        matching: The options of the match.
        threads: Number of threads of each worker.
        shown: The indices of the pairs whose disparities are returned, for pictures.
    """

    dataset: tuple[str, Path, str]
    dataset_options: dict[str, Any]
    matcher: dict[str, Any]
    matching: MatchOptions
    threads: int = 1
    shown: frozenset[int] = frozenset()


class Scored(NamedTuple):
    """The scores of one pair."""

    place: int  # in the dataset
    result: PairResult
    dense: FloatMap | None


def score_pairs(
    work: ScoringWork, indices: Sequence[int], address: str, workers: int | None = None
) -> Iterator[Scored]:
    """Score the pairs of these indices on a cluster; they come as they are finished, in any order."""
    with session(address):
        import pyarrow as pa
        import ray.data

        pool = workers or capacity(work.threads)
        settings = prepare_nodes(Settings(work.matcher, threads=work.threads))
        tasks = [
            pa.table({"index": list(indices[first : first + _PAIRS_PER_TASK])})
            for first in range(0, len(indices), _PAIRS_PER_TASK)
        ]
        scores = ray.data.from_arrow(tasks).map_batches(
            PairScorer,
            fn_constructor_args=(work, settings),
            batch_size=None,
            batch_format="pyarrow",
            num_cpus=work.threads,
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=pool, initial_size=pool),
        )
        for table in tables(scores):
            for content in table.column("scored").to_pylist():
                yield pickle.loads(content)  # of our own workers


class PairScorer:
    """A worker that scores pairs."""

    def __init__(self, work: ScoringWork, settings: Settings) -> None:
        from aanet.data.datasets import open_dataset
        from aanet.evaluation.protocols import protocol_of

        self.work = work
        self.dataset = open_dataset(*work.dataset, **work.dataset_options)
        self.protocol = protocol_of(self.dataset.name)
        self.matcher = partial(open_matcher(settings), options=work.matching)

    @reporting_errors
    def __call__(self, indices: pyarrow.Table) -> pyarrow.Table:
        """Score the pairs of these indices."""
        import pyarrow as pa

        from aanet.evaluation.evaluate import score_pair

        contents = []
        for index in indices.column("index").to_pylist():
            result, dense = score_pair(self.matcher, self.dataset[index], self.protocol)
            shown = dense if index in self.work.shown else None
            contents.append(pickle.dumps(Scored(index, result, shown)))
        return pa.table({"scored": pa.array(contents, pa.binary())})
