"""A lock on the folder of a run, so that two processes never write into it at the same time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from aanet.errors import UnsupportedError
from aanet.io.locking import lock_if_possible

FILE_NAME = ".lock"
# The data workers of a process that was killed hold its lock for some seconds, and the server of a network
# file system that of a host that died, usually for a minute and a half.
PATIENCE_SECONDS = 120.0


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


def wait_until_free(folder: Path, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for the end of another process that trains in the folder, for a limited time."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            with locked(folder):
                return
        except UnsupportedError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.5)
