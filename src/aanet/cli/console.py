"""Output to terminals, log files and pipes: progress bars, errors, and characters that an encoding lacks."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.status import Status

from aanet.errors import AanetError, OptionError

T = TypeVar("T")

# What the command line calls the options that an error names.
_OPTIONS = {
    "calibration": "--calib FILE",
    "check": "--check",
    "second_file": "--calib-right FILE",
    "unit": "--unit mm, cm or m",
    "rectified": "--rectified",
    "resized": "--resized",
}

_ERROR_HANDLER = "aanet.ascii"
_ASCII = {"✓": "+", "✗": "-", "█": "#", "×": "x", "–": "-", "…": "...", "→": "->"}


def replace_unencodable_characters() -> None:
    """Print ASCII instead of what stdout and stderr cannot encode, as in a legacy Windows code page."""
    codecs.register_error(_ERROR_HANDLER, _substitute)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ERROR_HANDLER)


def _substitute(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    return "".join(_ASCII.get(character, "?") for character in characters), error.end


def sentence(error: AanetError) -> str:
    """Return the message of an error in one line, with options as the command line spells them."""
    message = error.worded(_OPTIONS) if isinstance(error, OptionError) else str(error)
    return " ".join(message.split())


def shows_progress() -> bool:
    """Whether stderr is a terminal; rich's `is_terminal` is also true where colors are forced."""
    return sys.stderr.isatty()


def status(message: str) -> Status:
    """Show a spinner with a message on a terminal, while the returned context is open."""
    return Console(stderr=True, quiet=not shows_progress()).status(message)


@contextmanager
def progress_bar(description: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Show a bar on a terminal until the block ends; the block calls the function once per item."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not shows_progress()) as progress:
        task = progress.add_task(description, total=total)
        yield lambda: progress.advance(task)


class Percent:
    """Advances a bar of 100 to a share of the work."""

    def __init__(self, advance: Callable[[], None]) -> None:
        self.advance, self.done = advance, 0

    def reach(self, share: float) -> None:
        """Advance the bar to the share, in 0 … 1."""
        while self.done < int(100 * share):
            self.advance()
            self.done += 1


def track(items: Iterable[T], description: str, total: int | None = None) -> Iterator[T]:
    """Yield the items and show a progress bar on a terminal."""
    with progress_bar(description, total) as advance:
        for item in items:
            yield item
            advance()
