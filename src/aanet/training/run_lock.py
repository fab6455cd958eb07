"""A lock on the folder of a run, so that two processes never write into it at the same time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from aanet.errors import UnsupportedError
from aanet.io.locking import lock_if_possible

FILE_NAME = ".lock"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, or raise an error if another process holds it.

    This is not the lock of `locked_folder`, which others hold for moments while they write into the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / FILE_NAME).open("ab") as file:
        if not lock_if_possible(file.fileno()):
            raise UnsupportedError(
                f"Another process is training in {folder}; wait until it ends, or choose another folder."
            )
        yield
