"""The option --jsonl: a line of JSON for each pair, written when the pair is finished."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO

import typer

from aanet.cli.options import refuse_existing
from aanet.io.atomic import report_as_write_error

STDOUT = "-"
JsonLines = Annotated[
    str | None,
    typer.Option(
        "--jsonl",
        metavar="FILE",
        help="Write one line of JSON per pair as soon as it is finished; - writes to stdout, and the summary "
        "then goes to stderr. With --resume, lines are appended to the file.",
        show_default=False,
    ),
]


@contextmanager
def open_json_lines(where: str | None, resume: bool, overwrite: bool) -> Iterator[TextIO | None]:
    """Open the file, or stdout; None if there is nothing to write."""
    if where is None or where == STDOUT:
        yield None if where is None else sys.stdout
        return
    path = Path(where)
    if not resume:
        refuse_existing(overwrite, path)
    with report_as_write_error(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            # A process that was killed may have left the beginning of a line.
            file.truncate(_end_of_last_line(path) if resume else 0)
    with report_as_write_error(path), path.open("a", encoding="utf-8", newline="\n") as lines:
        yield lines


def _end_of_last_line(path: Path) -> int:
    """The number of bytes up to the last line break."""
    with path.open("rb") as file:
        place = file.seek(0, 2)
        while place:
            start = max(place - 65_536, 0)
            file.seek(start)
            found = file.read(place - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            place = start
    return 0
