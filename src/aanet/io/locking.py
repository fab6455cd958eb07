"""Locks between processes; the operating system releases them when their holder ends or is killed."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from aanet.errors import UnsupportedError

_HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)


def lock(handle: int, wait: bool) -> bool:
    """Lock an open file or folder until it is closed; False if another process holds the lock.

    A file system without locks raises an OSError.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True


def lock_if_possible(handle: int, wait: bool = False) -> bool:
    """Lock like `lock`; a file system without locks is used without one."""
    try:
        return lock(handle, wait)
    except OSError:
        return True


@contextlib.contextmanager
def locked_folder(folder: Path, refusal: str | None = None) -> Iterator[None]:
    """Hold the lock of a folder, without a file for it; Windows, which cannot open folders, has no such lock.

    Args:
        folder: The folder; it is created if it does not exist.
        refusal: The message of the error if another process holds the lock; None waits until it is free.
    """
    handle: int | None = None
    # A folder that cannot be created or opened is reported by what is then written into it.
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    try:
        if handle is not None and not lock_if_possible(handle, wait=refusal is None):
            raise UnsupportedError(refusal or f"{folder} is locked by another process.")
        yield
    finally:
        if handle is not None:
            os.close(handle)
