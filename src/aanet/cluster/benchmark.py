"""One worker, two workers, and no Ray at all, on the same pairs in one run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aanet.cluster.cost import Measured
from aanet.cluster.manifest import FOLDER, Manifest, read_manifest, schema
from aanet.cluster.prediction import Settings
from aanet.cluster.run import predict_list
from aanet.cluster.session import require_reachable, session
from aanet.cluster.work_list import open_list
from aanet.errors import AanetError
from aanet.inference.options import MatchOptions
from aanet.inference.save_options import SaveOptions
from aanet.io.images import write_image
from aanet.io.pairs import Pair, find_pairs
from aanet.io.storage import Folder
from aanet.matcher import StereoMatcher
from aanet.prediction.outcome import Done, Summary
from aanet.prediction.pipeline import Pipeline, Steps
from aanet.prediction.work import Work

HEADINGS = ("", "workers", "s / pair", "pairs / s", "first result", "× plain")
_MANIFEST_ROWS = 10_000  # on which the driver's share is measured
_TASK_ROWS = 16
_DISPARITY = 12


@dataclass(frozen=True)
class Throughput:
    """How fast pairs came.

    Attributes:
        what: How they were matched.
        workers: In how many processes, with one thread each.
        first_seconds: Until the first outcome; the model is opened and workers are started meanwhile.
        pair_seconds: Between outcomes from then on.
    """

    what: str
    workers: int
    first_seconds: float
    pair_seconds: float


@dataclass(frozen=True)
class Comparison:
    """The measurements of one run."""

    size: tuple[int, int]
    pairs: int
    plain: Throughput
    ray: list[Throughput]  # with one worker, and with two
    measured: Measured

    @property
    def overhead(self) -> float:
        """The share by which a pair takes longer with one worker of Ray than without Ray."""
        return self.ray[0].pair_seconds / self.plain.pair_seconds - 1

    @property
    def speedup(self) -> float:
        """How many times as fast two workers are as one."""
        return self.ray[0].pair_seconds / self.ray[1].pair_seconds

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "overhead": self.overhead, "speedup": self.speedup}

    def rows(self) -> list[tuple[str, ...]]:
        """The cells of a table."""
        return [
            (
                *(each.what, str(each.workers), f"{each.pair_seconds:.3f}", f"{1 / each.pair_seconds:.2f}"),
                *(f"{each.first_seconds:.1f} s", f"{self.plain.pair_seconds / each.pair_seconds:.2f}"),
            )
            for each in (self.plain, *self.ray)
        ]


def compare(
    model: str,
    size: tuple[int, int],
    pairs: int,
    address: str,
    observe: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Match the same random pairs without Ray, with one worker and with two, with one thread each."""
    require_reachable(address)  # before the measurement without Ray
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        _put_pairs(folder / "in", size, pairs)
        observe("matching without Ray")
        plain = _plain(model, folder)
        with session(address, cpus=2):
            ray = [_on_ray(model, folder, address, workers, observe) for workers in (1, 2)]
        measured = _measured(folder, ray[0].pair_seconds)
    return Comparison(size, pairs, plain, ray, measured)


def _put_pairs(folder: Path, size: tuple[int, int], count: int) -> None:
    height, width = size
    for number in range(count):
        coarse = np.random.default_rng(number).integers(
            0, 256, (height // 8 + 1, width // 8 + 4, 3), np.uint8
        )
        scene = coarse.repeat(8, axis=0).repeat(8, axis=1)[:height]
        write_image(folder / f"left/{number:04d}.png", scene[:, :width])
        write_image(folder / f"right/{number:04d}.png", scene[:, _DISPARITY : width + _DISPARITY])


def _plain(model: str, folder: Path) -> Throughput:
    """As `aanet predict` does it."""
    clock = _Clock()
    matcher, options = StereoMatcher(model, threads=1), (MatchOptions(), SaveOptions())
    work = Work(matcher, Folder(folder / "plain"), ("disparity",), None, *options, replace=False)
    steps: Steps[Pair, Any, Any] = Steps(
        read=lambda pair: pair.load(),
        match=lambda _, images: work.match(images),
        save=lambda pair, result: work.save(pair.name, result),
        skipped=lambda pair: Done(pair.name, skipped=True),
        failed=lambda pair, error: Done(pair.name, error=str(error)),
    )
    with Pipeline(steps) as pipeline:
        for number, done in enumerate(pipeline.outcomes(find_pairs(folder / "in")), 1):
            if done.error is not None:
                raise AanetError(done.error)
            clock(number)
    return Throughput("aanet predict", 1, *clock.times())


def _on_ray(
    model: str, folder: Path, address: str, workers: int, observe: Callable[[str], None]
) -> Throughput:
    observe(f"matching with {workers} worker{'s' * (workers > 1)}")
    output = folder / f"ray{workers}"
    settings = Settings({"model": model}, str(output), ("disparity",))
    work, clock = open_list(str(folder / "in")), _Clock()
    summary = predict_list(
        work, settings, address, workers=workers, observe=lambda so_far: clock(so_far.matched)
    )
    _require_matched(summary, output)
    return Throughput("aanet predict --ray", workers, *clock.times())


def _require_matched(summary: Summary, output: Path) -> None:
    if summary.failed:
        errors = [row for row in read_manifest(str(output)).column("error").to_pylist() if row]
        raise AanetError(errors[0])


class _Clock:
    """Notes how many pairs were finished when."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._seen: list[tuple[int, float]] = []

    def __call__(self, finished: int) -> None:
        if finished:
            self._seen.append((finished, time.perf_counter()))

    def times(self) -> tuple[float, float]:
        """The seconds until the first outcome, and of a pair from then on."""
        (first, start), (last, end) = self._seen[0], self._seen[-1]
        if last == first:
            raise AanetError("There were too few pairs to measure; increase --rounds.")
        return start - self._start, (end - start) / (last - first)


def _measured(folder: Path, worker_seconds: float) -> Measured:
    """What a pair costs besides time of its worker, from the manifest of the run with one worker."""
    manifest = read_manifest(str(folder / "ray1"))
    long = Manifest(str(folder / "long"))
    parts = list(_long_manifest(manifest.to_pylist()))
    start = time.perf_counter()
    for table in parts:
        long.add(table)
    long.flush()
    seconds = (time.perf_counter() - start) / _MANIFEST_ROWS
    size = sum(part.stat().st_size for part in (folder / "long" / FOLDER).iterdir()) / _MANIFEST_ROWS
    read, written = (_mean(manifest.column(name).to_pylist()) for name in ("read_bytes", "written_bytes"))
    return Measured(worker_seconds, read, written, size, seconds)


def _long_manifest(measured: list[dict[str, Any]]) -> Iterator[Any]:
    """Tables of tasks with the measured rows, but with names and numbers of their own, as in a long run."""
    import pyarrow as pa

    noise = np.random.default_rng(0).random((_MANIFEST_ROWS, 3))
    for first in range(0, _MANIFEST_ROWS, _TASK_ROWS):
        rows = []
        for place in range(first, min(first + _TASK_ROWS, _MANIFEST_ROWS)):
            row = dict(measured[place % len(measured)])
            old, new = row["name"], f"{place:07d}"
            paths = {side: row[side].replace(old, new) for side in ("left", "right")}
            files = [file.replace(old, new) for file in row["files"]]
            numbers = ("matching_seconds", "wall_seconds", "mean_confidence")
            changed = {name: row[name] * factor for name, factor in zip(numbers, noise[place], strict=True)}
            rows.append({**row, **paths, **changed, "place": place, "name": new, "files": files})
        yield pa.Table.from_pylist(rows, schema())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
