"""CSV files that list the images of pairs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from aanet.errors import ReadError
from aanet.io.files import MEGABYTE, read_bytes

_LIMIT = 100 * MEGABYTE
_LONGEST = 1000  # characters in a cell
NEEDED = ("left", "right")


def read_table(path: Path, optional: Sequence[str] | None = None) -> list[dict[str, str]]:
    """Read a CSV file with the columns left and right; empty cells are left out of their row.

    Args:
        path: The file.
        optional: Other columns that the file may have; None ignores all others.
    """
    text = read_bytes(path, "a CSV file of pairs", _LIMIT).decode("utf-8-sig", "replace")
    rows = list(iterate_table(io.StringIO(text, newline=""), str(path), optional))
    if not rows:
        raise ReadError(f"{path} lists no pairs.")
    return rows


def iterate_table(
    lines: Iterable[str], path: str, optional: Sequence[str] | None = None
) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV file of any length; the arguments are those of `read_table`."""
    reader = csv.DictReader(lines, skipinitialspace=True)
    try:
        columns = [column.strip() for column in reader.fieldnames or ()]
        require_columns(columns, path, optional)
        reader.fieldnames = columns
        for row in reader:
            yield checked_row(path, reader.line_num, row, (*NEEDED, *(optional or ())))
    except csv.Error as error:
        raise ReadError(f"{path} is not a CSV file: {error} in line {reader.line_num}.") from error


def require_columns(columns: Sequence[str], path: str, optional: Sequence[str] | None = None) -> None:
    """Refuse a table without the columns left and right, or with unknown ones."""
    known = {*NEEDED, *(columns if optional is None else optional)}
    if not set(NEEDED) <= set(columns) <= known or len(set(columns)) < len(columns):
        may = f" and may name {' and '.join(optional)}" if optional else ""
        got = repr(", ".join(columns)[:100])
        raise ReadError(f"The first line of {path} must name the columns left and right{may}; got {got}.")


def checked_row(path: str, line: int, row: dict[str, str | None], columns: Sequence[str]) -> dict[str, str]:
    """The cells of a row that name files; empty ones are left out."""
    cells = {column: (row.get(column) or "").strip() for column in columns}
    found = {column: cell for column, cell in cells.items() if cell}
    for column, cell in found.items():
        if not Path(cell).name or min(cell) < " " or len(cell) > _LONGEST:
            raise ReadError(f"{path}, line {line}: {column} is not the name of a file.")
    if not set(NEEDED) <= found.keys():
        raise ReadError(f"{path}, line {line}: expected a left and a right file.")
    return found
