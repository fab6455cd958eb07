"""Prediction on a Ray Dataset: a pool of actors with one opened matcher each."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from aanet.cluster.results import plain_error
from aanet.cluster.session import is_alive, on_every_node, start_quietly, versions
from aanet.errors import AanetError, InputError, UnsupportedError
from aanet.inference.options import MatchOptions
from aanet.inference.save_options import SaveOptions
from aanet.io import storage
from aanet.io.images import MAX_PIXEL_BYTES, AnyImage, decode_image
from aanet.io.locking import locked_folder
from aanet.prediction.outcome import Done
from aanet.prediction.pipeline import Pipeline, Steps

if TYPE_CHECKING:
    import pyarrow
    from ray.data import Dataset

    from aanet.geometry.rectification import Calibration
    from aanet.matcher import StereoMatcher
    from aanet.prediction.work import Work
    from aanet.result import StereoResult


# Of a task whose worker died. Until a node counts as dead, its tasks are tried again every second; but a pair
# that kills every worker must not do so forever.
_RETRIES = 200


@dataclass(frozen=True)
class Settings:
    """What every worker does with its pairs.

    Attributes:
        matcher: The arguments of `StereoMatcher` but for the threads.
        output: Folder or URL for the files; None returns them in columns of their names instead.
        save: The outputs.
        calibration: Of raw images, or for depth.
        options: The options of the match.
        saving: The options of the outputs.
        threads: Number of threads of each worker.
        prepared: Whether every host has opened the matcher before.
    """

    matcher: dict[str, Any] = field(default_factory=dict)
    output: str | None = None
    save: tuple[str, ...] = ("disparity",)
    calibration: Calibration | None = None
    options: MatchOptions = field(default_factory=MatchOptions)
    saving: SaveOptions = field(default_factory=SaveOptions)
    threads: int = 1
    prepared: bool = False


def predict(
    dataset: Dataset,
    model: str | None = None,
    *,
    output: str | None = None,
    save: tuple[str, ...] | list[str] = ("disparity",),
    calibration: Calibration | None = None,
    options: MatchOptions | None = None,
    workers: int | None = None,
    threads: int = 1,
    saving: SaveOptions | None = None,
    **matcher: Any,
) -> Dataset:
    """Match the pairs of a Ray Dataset, lazily, like any other of its transformations.

    A pair that cannot be matched is a row with an `error`. A failure to write ends the execution. A block of
    the dataset is the unit of work: `dataset.repartition(target_num_rows_per_block=16)` makes small ones.

    Args:
        dataset: Rows with `left` and `right`, each a path, a URL or the bytes of an image file; `name`, the
            beginning of the names of the output files, is the stem of the left path by default.  Other
            columns are kept.
        model: The model, as that of `StereoMatcher`.
        output: A folder or URL that all nodes reach, for the files.  Without it, the rows have the contents
            of the files, in columns named like the outputs.
        save: The outputs, such as "disparity" or "color.jpg".
        calibration: Of raw images, or for depth.
        options: The options of the match.
        workers: Number of actors; by default as many as fit into the cluster with one processor left for the
            rest of the pipeline.
        threads: Number of threads of each.
        saving: The options of the outputs.
        matcher: Other arguments of `StereoMatcher`, such as `max_disparity` or `precision`.
    """
    ray = start_quietly()
    from aanet import outputs

    for each in save:
        outputs.find(each)
        outputs.require(each, calibration is not None, (options or MatchOptions()).check)
    settings = Settings(
        {"model": model, **matcher},
        output,
        tuple(save),
        calibration,
        options or MatchOptions(),
        saving or SaveOptions(),
        threads,
    )
    if workers is None:
        workers = max((int(ray.cluster_resources().get("CPU", 1)) - 1) // threads, 1)
    return matched_by(PairMatcher, settings, dataset, workers)


def matched_by(actor: type[PairMatcher], settings: Settings, dataset: Dataset, workers: int) -> Dataset:
    """Let a pool of actors work on the blocks of a dataset."""
    import ray.data

    return dataset.map_batches(
        actor,
        fn_constructor_args=(settings, versions()),
        batch_size=None,
        batch_format="pyarrow",
        num_cpus=settings.threads,
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=workers, initial_size=workers),
        ray_remote_args_fn=lambda: {"max_task_retries": _RETRIES},
    )


class PairMatcher:
    """An actor of the pool: opens its matcher once, and matches the pairs of each table that it gets."""

    def __init__(self, settings: Settings, expected: dict[str, str]) -> None:
        self.settings, self._node = settings, _node()
        self._place = (
            _Kept() if settings.output is None else storage.open_storage(settings.output, alone=True)
        )
        self._refusal: AanetError | None = None
        try:
            self._work = _open(settings, self._place, expected)
        except AanetError as error:  # raised with the first task, because Ray tries again to start an actor
            self._refusal = error

    def __call__(self, pairs: pyarrow.Table) -> pyarrow.Table:
        """Match the pairs; returns their rows with the outcome."""
        import pyarrow as pa

        if self._refusal is not None:
            raise self._refusal
        rows = pairs.to_pylist()
        sizes: dict[int, int] = {}
        steps: Steps[int, tuple[AnyImage, AnyImage], StereoResult] = Steps(
            read=lambda index: _read(rows[index], index, sizes),
            match=lambda _, images: self._match(images),
            save=lambda index, result: self._save(rows[index], index, result),
            skipped=lambda index: Done(_name(rows[index]), skipped=True),
            failed=lambda index, error: Done(_name(rows[index]), error=_sentence(error)),
        )
        with Pipeline(steps) as pipeline:
            outcomes = list(pipeline.outcomes(range(len(rows))))
        described = [self._row(done, index, sizes.get(index)) for index, done in enumerate(outcomes)]
        schema = _outcome_schema(() if self.settings.output is not None else self.settings.save)
        table = pa.Table.from_pylist(described, schema)
        kept = [name for name in pairs.column_names if name not in table.column_names]
        for name in kept:
            table = table.append_column(pairs.schema.field(name), pairs.column(name))
        return table

    def _match(self, images: tuple[AnyImage, AnyImage]) -> StereoResult:
        try:
            return self._work.match(images)
        except MemoryError as error:  # a pair that is too large must not end the run
            raise UnsupportedError("There is not enough free memory for this pair; try tiles.") from error

    def _save(self, row: dict[str, Any], index: int, result: StereoResult) -> Done:
        if self.settings.output is not None:
            return self._work.save(_name(row), result)
        done = self._work.save(str(index), result)  # names need not be unique if there are no files
        return dataclasses.replace(done, name=_name(row), files=[])

    def _row(self, done: Done, index: int, size: int | None) -> dict[str, Any]:
        row = dataclasses.asdict(done)
        engine = self._work.matcher.engine.description
        contents = {}
        if isinstance(self._place, _Kept):
            contents = self._place.taken(self.settings.save, self._work.file_names(str(index)))
        return {**row, **contents, "read_bytes": size, "engine": engine, "node": self._node}


def _open(settings: Settings, place: storage.Storage, expected: dict[str, str]) -> Work:
    from aanet.prediction.work import Work

    if versions() != expected:  # of a node that came after the others were asked
        raise UnsupportedError(f"A node has {versions()}; the process that started the run has {expected}.")
    return Work(
        *(
            open_matcher(settings),
            place,
            settings.save,
            settings.calibration,
            settings.options,
            settings.saving,
        ),
        replace=True,
    )


def prepare_nodes(settings: Settings) -> Settings:
    """Let each host open the matcher once, so that its workers find the network converted and tried.

    What is wrong with the model is raised here, before the work.
    """
    import ray

    def prepare() -> None:
        open_matcher(settings)

    for node, answer in on_every_node(ray.remote(prepare), settings.threads):
        try:
            answer()
        except ray.exceptions.RayError as error:
            if is_alive(node):
                raise plain_error(error) from error
    return dataclasses.replace(settings, prepared=True)


def open_matcher(settings: Settings) -> StereoMatcher:
    """Open the matcher; the first process of a host converts a network, and the others wait for it."""
    from aanet.engines.openvino.cache import cache_folder
    from aanet.matcher import StereoMatcher

    alone = contextlib.nullcontext() if settings.prepared else locked_folder(cache_folder() / "opening")
    with alone:
        return StereoMatcher(**settings.matcher, threads=settings.threads)


class _Kept:
    """In place of a storage: the contents stay in memory until they are taken."""

    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}

    def location(self, name: str) -> str:
        return name

    def exists(self, name: str) -> bool:
        return name in self._contents

    def write(self, name: str, data: bytes) -> None:
        self._contents[name] = data

    def write_together(self, contents: Mapping[str, bytes], overwrite: bool = True) -> None:  # noqa: ARG002 - memory
        self._contents.update(contents)

    def names(self) -> list[str]:
        return sorted(self._contents)

    def remove(self, *names: str) -> None:
        for name in names:
            self._contents.pop(name, None)

    def taken(self, outputs: tuple[str, ...], names: list[str]) -> dict[str, bytes | None]:
        """The contents by output; they are forgotten here."""
        return {output: self._contents.pop(name, None) for output, name in zip(outputs, names, strict=True)}


def _outcome_schema(contents: tuple[str, ...]) -> pyarrow.Schema:
    import pyarrow as pa

    from aanet.cluster.manifest import schema

    fields = [each for each in schema() if each.name not in ("place", "left", "right")]
    return pa.schema([*fields, *((output, pa.binary()) for output in contents)])


def _read(row: dict[str, Any], index: int, sizes: dict[int, int]) -> tuple[AnyImage, AnyImage]:
    """The images of a row; the number of their bytes goes into `sizes`."""
    _require_inside(_name(row))
    files = [_content(row, side) for side in ("left", "right")]
    sizes[index] = sum(len(data) for data, _ in files)
    left, right = (decode_image(data, name) for data, name in files)
    return left, right


def _content(row: dict[str, Any], side: str) -> tuple[bytes, str]:
    given = row.get(side)
    if isinstance(given, bytes):
        return given, f"the {side} image of {_name(row)}"
    if not isinstance(given, str):
        raise InputError(
            f"The {side} image of a pair is a path, a URL or the bytes of a file; got {given!r:.50}."
        )
    local = storage.local_path(given)
    shown = given if local is None else str(local)
    return storage.read_bytes(given, "an image", MAX_PIXEL_BYTES), shown


def _name(row: dict[str, Any]) -> str:
    if isinstance(row.get("name"), str):
        return str(row["name"])
    return PurePosixPath(row["left"]).stem if isinstance(row.get("left"), str) else "pair"


def _require_inside(name: str) -> None:
    """Refuse a name that leads out of the output folder."""
    path = PurePosixPath(name.replace("\\", "/"))
    if not name or path.is_absolute() or ".." in path.parts or min(name) < " " or ":" in name:
        raise InputError(f"{name[:100]!r} cannot be the beginning of the names of output files.")


def _sentence(error: AanetError) -> str:
    return " ".join(str(error).split())


def _node() -> str:
    import ray

    return f"{platform.node()} {ray.get_runtime_context().get_node_id()[:8]}"
