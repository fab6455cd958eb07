"""A lock on the folder of a run, so that two processes never write into it at the same time."""

from __future__ import annotations

import contextlib
import errno
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from aanet.errors import UnsupportedError

FILE_NAME = ".lock"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, or raise an error if another process holds it.

    The operating system releases the lock when the process ends, also if it is killed. A file system without
    locks is used without one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / FILE_NAME).open("ab") as file:
        try:
            _lock(file)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
                raise UnsupportedError(
                    f"Another process is training in {folder}; wait until it ends, or choose another folder."
                ) from error
        yield


def _lock(file: IO[bytes]) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
