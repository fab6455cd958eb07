"""The manifest of a run: one row per pair, in Parquet files that are written one after the other."""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from aanet.errors import InputError, ReadError, WriteError
from aanet.io import storage
from aanet.io.files import MEGABYTE

if TYPE_CHECKING:
    import pyarrow

FOLDER = "manifest"
JOB = "job.json"
_PART = re.compile(r"part-\d{6,}\.parquet")
_PART_ROWS = 1000
_PART_SECONDS = 10.0  # a driver that is killed loses the rows of at most this time
_COMPACT_ROWS = 100_000
_PART_LIMIT = 1000 * MEGABYTE
_FORMAT = 1


def schema() -> pyarrow.Schema:
    """The columns of the manifest."""
    import pyarrow as pa

    return pa.schema(
        [
            ("place", pa.int64()),
            ("name", pa.string()),
            ("left", pa.string()),
            ("right", pa.string()),
            ("files", pa.list_(pa.string())),
            ("width", pa.int32()),
            ("height", pa.int32()),
            ("matching_seconds", pa.float64()),
            ("wall_seconds", pa.float64()),
            ("mean_confidence", pa.float64()),
            ("read_bytes", pa.int64()),
            ("written_bytes", pa.int64()),
            ("warnings", pa.list_(pa.string())),
            ("notes", pa.list_(pa.string())),
            ("error", pa.string()),
            ("engine", pa.string()),
            ("node", pa.string()),
        ]
    )


class Manifest:
    """The manifest of one output, open for more rows.

    A part is written when it has enough rows or enough time has passed, completely or not at all. Rows of a
    pair that was matched twice, because a driver was killed before its part was written, count once.
    """

    def __init__(self, output: str) -> None:
        self.storage = storage.open_storage(storage.join(output, FOLDER))
        self.rows_written = 0
        self._waiting: list[pyarrow.Table] = []
        self._since = time.monotonic()
        self._next = 0

    def check(self, job: dict[str, Any], resume: bool, overwrite: bool) -> None:
        """Refuse a manifest that is there, unless it is of the same list and options and may go on.

        Args:
            job: What the outputs depend on, for JSON: the list and the options.
            resume: Whether to go on with the manifest that is there.
            overwrite: Whether to replace it.
        """
        if not self.storage.exists(JOB):
            return
        if resume:
            self._require_same({"format": _FORMAT, **job})
        elif not overwrite:
            place = self.storage.location(JOB)
            raise WriteError(
                f"{place} already exists; go on with --resume, choose another output, or add --overwrite."
            )

    def begin(self, job: dict[str, Any], resume: bool) -> None:
        """Start a new manifest, or go on with the one that is there."""
        if not resume:
            self.storage.remove(JOB, *self.parts())
        if not self.storage.exists(JOB):
            self.storage.write(JOB, json.dumps({"format": _FORMAT, **job}, indent=2).encode())
        parts = self.parts()
        self._next = 1 + int(parts[-1][len("part-") : -len(".parquet")]) if parts else 0

    def _require_same(self, wanted: dict[str, Any]) -> None:
        place = self.storage.location(JOB)
        try:
            found = json.loads(storage.read_bytes(place, "the description of a job", MEGABYTE))
            different = [key for key in wanted if found[key] != wanted[key]]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ReadError(f"{place} is damaged; choose another output.") from error
        if "list" in different:
            raise InputError(f"{place} belongs to another list of pairs; choose another output.")
        if different:
            changed = [
                key
                for key in wanted["options"]
                if isinstance(found["options"], dict) and found["options"].get(key) != wanted["options"][key]
            ]
            raise InputError(
                f"{place} belongs to a run with other options ({', '.join(changed or different)}); "
                "choose another output."
            )

    def parts(self) -> list[str]:
        """The names of the parts, the oldest first."""
        return [name for name in self.storage.names() if _PART.fullmatch(name)]

    def finished(self, total: int) -> bytearray:
        """For each place of the list, 1 if it has a row."""
        done = bytearray(total)
        for table in _tables(self, ["place"]):
            for place in table.column("place").to_pylist():
                if place is not None and 0 <= place < total:
                    done[place] = 1
        return done

    def add(self, rows: pyarrow.Table) -> None:
        """Add rows, which are written when there are enough of them."""
        self._waiting.append(rows.select(schema().names).cast(schema()))
        late = time.monotonic() - self._since > _PART_SECONDS
        if late or sum(map(len, self._waiting)) >= _PART_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write the rows that wait."""
        import pyarrow as pa

        self._since = time.monotonic()
        if self._waiting:
            table = pa.concat_tables(self._waiting)
            self._write(table)
            self.rows_written += len(table)
            self._waiting = []

    def compact(self) -> None:
        """Replace small parts by large ones; an interruption leaves rows twice, which count once."""
        group: list[tuple[str, pyarrow.Table]] = []
        for name, table in self._small_parts():
            group.append((name, table))
            if sum(len(each) for _, each in group) >= _COMPACT_ROWS:
                self._replace(group)
                group = []
        if len(group) > 1:
            self._replace(group)

    def _small_parts(self) -> Iterator[tuple[str, pyarrow.Table]]:
        for name in self.parts():
            table = _read_part(self.storage.location(name), None)
            if len(table) < _COMPACT_ROWS:
                yield name, table

    def _replace(self, group: list[tuple[str, pyarrow.Table]]) -> None:
        import pyarrow as pa

        self._write(pa.concat_tables([table for _, table in group]))
        self.storage.remove(*(name for name, _ in group))

    def _write(self, table: pyarrow.Table) -> None:
        from pyarrow import parquet

        buffer = io.BytesIO()
        parquet.write_table(table, buffer, compression="zstd")
        self.storage.write(f"part-{self._next:06d}.parquet", buffer.getvalue())
        self._next += 1


def read_manifest(output: str) -> pyarrow.Table:
    """The whole manifest of an output folder or URL, in the order of the list."""
    import pyarrow as pa

    parts = list(_tables(Manifest(output), None))
    if not parts:
        return schema().empty_table()
    table = pa.concat_tables(parts)
    places = table.column("place").to_pylist()
    last = {place: row for row, place in enumerate(places)}
    return table.take(pa.array([last[place] for place in sorted(last)]))


def _tables(manifest: Manifest, columns: list[str] | None) -> Iterator[pyarrow.Table]:
    for name in manifest.parts():
        yield _read_part(manifest.storage.location(name), columns)


def _read_part(place: str, columns: list[str] | None) -> pyarrow.Table:
    import pyarrow as pa
    from pyarrow import parquet

    data = storage.read_bytes(place, "a part of a manifest", _PART_LIMIT)
    try:
        table = parquet.read_table(io.BytesIO(data), columns=columns)
        return table.cast(schema() if columns is None else pa.schema([schema().field(c) for c in columns]))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ReadError(f"{place} is damaged; it is not a part of a manifest.") from error
