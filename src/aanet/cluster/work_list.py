"""The list of pairs that a cluster works on, read row by row from a CSV or Parquet file or a folder."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from aanet.errors import InputError, ReadError
from aanet.io import storage
from aanet.io.images import IMAGE_SUFFIXES
from aanet.io.pair_names import naming_of
from aanet.io.pairs import both_sides, find_pairs
from aanet.io.tables import NEEDED, checked_row, iterate_table, require_columns

_BATCH = 10_000  # rows of a Parquet file in memory
Row = tuple[str, str]  # left and right: absolute paths or URLs


class ListedPair(NamedTuple):
    """A row of the list."""

    place: int
    name: str
    left: str
    right: str


@dataclass(frozen=True)
class WorkList:
    """A list that is read anew for each pass, so that its rows are never all in memory.

    Attributes:
        pairs: Yields the rows in order.
        total: Their number.
        digest: Of all names and paths.
        unmatched: Files of one side without a partner.
    """

    pairs: Callable[[], Iterator[ListedPair]]
    total: int
    digest: str
    unmatched: list[str] = field(default_factory=list)


def open_list(left: str, right: str | None = None) -> WorkList:
    """Open what the arguments of `aanet predict` mean, or a Parquet file or folder at a URL.

    The names of the pairs are those that `aanet predict` gives them on one machine.
    """
    suffix = Path(left).suffix.lower()
    if right is None and suffix in _READERS:
        rows = _READERS[suffix]
        return _named(lambda: rows(left))
    if right is None and storage.is_url(left) and storage.local_path(left) is None:
        found = _pairs_at_url(left)
        return _named(lambda: iter(found))
    places = [storage.local_path(place) for place in (left, right) if place is not None]
    if None in places:
        raise InputError(f"{left} and {right}: give a CSV or Parquet file, or one URL with both sides.")
    pairs = find_pairs(*map(str, places))
    if pairs.video is not None or any(pair.files is None for pair in pairs):
        raise InputError(f"{left} is not a list of still pairs, which a cluster could share.")

    def listed() -> Iterator[ListedPair]:
        for place, pair in enumerate(pairs):
            assert pair.files is not None
            yield ListedPair(place, pair.name, *map(os.path.abspath, pair.files))

    return _counted(listed, pairs.unmatched)


def _named(rows: Callable[[], Iterator[Row]]) -> WorkList:
    naming = naming_of(left for left, _ in rows())

    def listed() -> Iterator[ListedPair]:
        for place, (left, right) in enumerate(rows()):
            yield ListedPair(place, naming.name(place, left), left, right)

    return _counted(listed, [])


def _counted(pairs: Callable[[], Iterator[ListedPair]], unmatched: list[str]) -> WorkList:
    digest, total = hashlib.sha256(), 0
    for pair in pairs():
        digest.update("\0".join((*pair[1:], "")).encode("utf-8", "surrogateescape"))
        total += 1
    if not total:
        raise ReadError("The list has no pairs.")
    return WorkList(pairs, total, digest.hexdigest(), unmatched)


def _csv_rows(place: str) -> Iterator[Row]:
    with storage.open_reading(place) as file:
        lines = io.TextIOWrapper(file, "utf-8-sig", "replace", newline="")
        for row in iterate_table(lines, place):
            yield _located(place, row)


def _parquet_rows(place: str) -> Iterator[Row]:
    import pyarrow
    from pyarrow import parquet

    with storage.open_reading(place) as file:
        try:
            table = parquet.ParquetFile(file)
            require_columns(table.schema_arrow.names, place)
            line = 0
            for batch in table.iter_batches(_BATCH, columns=list(NEEDED)):
                for row in batch.to_pylist():
                    line += 1
                    cells = {column: str(cell) if cell is not None else None for column, cell in row.items()}
                    yield _located(place, checked_row(place, line, cells, NEEDED))
        except (pyarrow.ArrowException, OSError) as error:
            raise ReadError(f"{place} is not a readable Parquet file.") from error


def _located(place: str, row: dict[str, str]) -> Row:
    base = storage.parent(place)
    base = base if storage.is_url(base) else os.path.abspath(base)  # noqa: PTH100 - resolve() follows links
    return storage.join(base, row["left"]), storage.join(base, row["right"])


_READERS: dict[str, Callable[[str], Iterator[Row]]] = {".csv": _csv_rows, ".parquet": _parquet_rows}


def _pairs_at_url(url: str) -> list[Row]:
    """The pairs among the images below a URL, as in a folder."""
    base = url.rstrip("/")
    names = [Path(name) for name in storage.find_files(base)]
    images = [
        name
        for name in names
        if name.suffix.lower() in IMAGE_SUFFIXES and not any(part.startswith(".") for part in name.parts)
    ]
    sides = both_sides(images)
    if sides is None:
        raise InputError(f"{url} has no pairs among its {len(images)} images.")
    left, right = sides
    return [
        (f"{base}/{file.as_posix()}", f"{base}/{right[name].as_posix()}")
        for name, file in left.items()
        if name in right
    ]
