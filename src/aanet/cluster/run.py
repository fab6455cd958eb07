"""A run on a cluster: from a list to output files and a manifest."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from aanet.cluster.manifest import FOLDER, Manifest
from aanet.cluster.prediction import PairMatcher, Settings, matched_by, prepare_nodes
from aanet.cluster.results import reporting_errors, tables
from aanet.cluster.session import capacity, session
from aanet.io import storage
from aanet.io.atomic import remove_leftovers
from aanet.io.files import MEGABYTE
from aanet.io.locking import locked_folder
from aanet.prediction.outcome import Summary

if TYPE_CHECKING:
    import pyarrow
    from ray.data import Dataset

    from aanet.cluster.work_list import ListedPair, WorkList

_PLAN = "plan"  # what is left to do, beside the manifest
_PLAN_ROWS = 10_000  # of a file
_PLAN_BYTES = 100 * MEGABYTE
_ROWS_PER_TASK = 16  # at most, because a worker that dies costs the pairs of its task, unless
_TASKS = 20_000  # there would be more tasks than this, which the driver keeps in memory
_TASKS_PER_WORKER = 4  # at least, so that no worker is left alone with the last task

Observer = Callable[[Summary], None]


def predict_list(
    work: WorkList,
    settings: Settings,
    address: str,
    *,
    workers: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    observe: Observer = lambda _: None,
) -> Summary:
    """Match all pairs of a list on a cluster, and write a row of the manifest for each.

    Args:
        work: The list.
        settings: What to do with each pair; its output is a folder or URL that all nodes reach.
        address: Of the cluster, as that of `session`.
        workers: Number of workers; by default as many as fit into the cluster.
        resume: Go on with the manifest that is there.
        overwrite: Replace the manifest and the files that are there.
        observe: Called with what has been done so far, each time that a task is finished.
    """
    assert settings.output is not None
    output = storage.absolute(settings.output)  # workers run in other folders
    settings = replace(settings, output=output)
    start, manifest, job = time.perf_counter(), Manifest(output), _description(work, settings)
    manifest.check(job, resume, overwrite)
    done = manifest.finished(work.total) if resume else bytearray(work.total)
    summary = Summary(unmatched=work.unmatched, failed=len(work.unmatched), skipped=sum(done))
    observe(summary)
    if summary.skipped < work.total:
        with session(address), _alone(output):
            pool = workers or capacity(settings.threads)
            settings = prepare_nodes(settings)
            manifest.begin(job, resume)
            plan = _write_plan(manifest, (pair for pair in work.pairs() if not done[pair.place]))
            dataset = matched_by(PlannedPairs, settings, _tasks(plan, pool), pool)
            try:
                _collect(dataset, manifest, summary, observe)
            finally:
                manifest.flush()
                manifest.storage.remove(_PLAN)
            manifest.compact()
    summary.wall_seconds = time.perf_counter() - start
    return summary


@contextlib.contextmanager
def _alone(output: str) -> Iterator[None]:
    """Refuse a second run into the same folder, and remove what a killed one left; URLs have no locks."""
    local = storage.local_path(output)
    if local is None:
        yield
        return
    remove_leftovers(local)
    with locked_folder(local / FOLDER, f"Another run is writing into {output}; choose another output."):
        yield


def _description(work: WorkList, settings: Settings) -> dict[str, Any]:
    """What the outputs depend on, for JSON; threads and workers do not change them."""
    options = dict(settings.matcher)
    options |= {"save": list(settings.save), **asdict(settings.options), **asdict(settings.saving)}
    options["calibration"] = None if settings.calibration is None else repr(settings.calibration)
    plain = {
        key: value if isinstance(value, str | int | list | None) else repr(value)
        for key, value in options.items()
    }
    return {"list": {"digest": work.digest, "pairs": work.total}, "options": plain}


class PlannedPairs(PairMatcher):
    """A worker of a run: its tasks are rows of the plan, which it reads itself."""

    @reporting_errors
    def __call__(self, pairs: pyarrow.Table) -> pyarrow.Table:
        """Match the pairs of one task."""
        from pyarrow import parquet

        (task,) = pairs.to_pylist()
        data = storage.read_bytes(task["plan"], "a part of a plan", _PLAN_BYTES)
        return super().__call__(parquet.read_table(io.BytesIO(data)).slice(task["first"], task["count"]))


class PlanPart(NamedTuple):
    """A file of the plan."""

    place: str
    rows: int


def _write_plan(manifest: Manifest, pairs: Iterator[ListedPair]) -> list[PlanPart]:
    """Write what is left to do as Parquet files, which the workers read."""
    import pyarrow as pa
    from pyarrow import parquet

    manifest.storage.remove(_PLAN)
    parts: list[PlanPart] = []
    while rows := [pair._asdict() for pair in itertools.islice(pairs, _PLAN_ROWS)]:
        name, buffer = f"{_PLAN}/part-{len(parts):06d}.parquet", io.BytesIO()
        parquet.write_table(pa.Table.from_pylist(rows), buffer)
        manifest.storage.write(name, buffer.getvalue())
        parts.append(PlanPart(manifest.storage.location(name), len(rows)))
    return parts


def _tasks(plan: list[PlanPart], workers: int) -> Dataset:
    """A block for each task, with the place of its rows."""
    import pyarrow as pa
    import ray.data

    total = sum(part.rows for part in plan)
    rows = min(_ROWS_PER_TASK, math.ceil(total / (workers * _TASKS_PER_WORKER)))
    rows = max(rows, math.ceil(total / _TASKS))
    tasks = [
        pa.table(
            {
                "plan": [part.place],
                "first": [first],
                "count": [min(rows, part.rows - first)],
            }
        )
        for part in plan
        for first in range(0, part.rows, rows)
    ]
    return ray.data.from_arrow(tasks)


def _collect(dataset: Dataset, manifest: Manifest, summary: Summary, observe: Observer) -> None:
    """Take the rows as they come; on Ctrl-C, those that have come are kept."""
    try:
        for table in tables(dataset):
            _count(table, summary)
            manifest.add(table)
            observe(summary)
    except KeyboardInterrupt:
        summary.interrupted = True


def _count(table: pyarrow.Table, summary: Summary) -> None:
    for error, matching, wall in zip(
        *(table.column(name).to_pylist() for name in ("error", "matching_seconds", "wall_seconds")),
        strict=True,
    ):
        summary.failed += error is not None
        if error is None:
            summary.matched += 1
            summary.matching_seconds += matching
            summary.pair_seconds += wall
