"""Atomic writing: a file is written completely or not at all."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from aanet.errors import WriteError
from aanet.io.locking import lock, lock_if_possible, locked_folder

PREFIX = ".aanet-"  # of temporary folders


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path; the file there replaces `path` on success and is removed on any failure.

    The path has the same name in a temporary folder, because writers choose the format by the suffix. A full
    disk or a folder without write permission raises a `WriteError`, and an existing file at `path` stays as
    it was.
    """
    target = Path(path)
    with report_as_write_error(target), temporary_folder(target.parent) as folder:
        temporary = folder / target.name
        yield temporary
        flush_to_disk(temporary)
        temporary.replace(target)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file completely or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def write_together(
    folder: Path, contents: Mapping[Path, bytes], overwrite: bool = True, alone: bool = False
) -> None:
    """Write files that belong together into a folder; those of two processes are never mixed.

    All are written under temporary names first. A process that is killed while it replaces older files may
    leave some of the files missing, but never old ones beside new ones.

    Args:
        folder: The folder; processes that write into the same folder wait for each other.
        contents: The files, in this folder or in folders inside it, with their contents.
        overwrite: Whether to replace existing files; otherwise one of them is an error.
        alone: Whether no other process writes these files, so that there is nobody to wait for.
    """
    with contextlib.nullcontext() if alone else locked_folder(folder), report_as_write_error(folder):
        for path in contents:
            if not overwrite and path.exists():
                raise WriteError(f"{path} already exists and is not replaced.")
        with temporary_folder(folder) as temporary:
            written = {temporary / str(number): path for number, path in enumerate(contents)}
            for file, path in written.items():
                file.write_bytes(contents[path])
                flush_to_disk(file)
                path.parent.mkdir(parents=True, exist_ok=True)
            if len(contents) > 1:
                for path in contents:
                    path.unlink(missing_ok=True)
            for file, path in written.items():
                file.replace(path)


@contextlib.contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Yield a hidden folder in `parent`, which is removed in the end.

    If the process is killed, the folder remains until another process writes into `parent`.
    """
    parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(parent)
    folder, handle = _create(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def flush_to_disk(path: Path) -> None:
    """Wait until a file is on the disk, so that a power failure cannot leave its new name without content."""
    handle = os.open(path, os.O_RDWR)  # Windows flushes only what is open for writing
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def report_as_write_error(path: Path) -> Iterator[None]:
    """Raise a `WriteError` that names the path for any OSError."""
    try:
        yield
    except OSError as error:
        raise WriteError(f"Cannot write {path}: {(error.strerror or str(error)).lower()}.") from error


def _create(parent: Path) -> tuple[Path, int | None]:
    """Create a temporary folder and lock it as a sign that its process is alive."""
    while True:
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=PREFIX))
        if sys.platform == "win32":
            return folder, None  # folders cannot be locked
        handle = os.open(folder, os.O_RDONLY)
        lock_if_possible(handle, wait=True)
        if folder.exists():
            return folder, handle
        os.close(handle)  # another process took it for a leftover before it was locked


@functools.lru_cache(maxsize=4096)
def remove_leftovers(parent: Path) -> None:
    """Remove the temporary folders of killed processes; done once per folder."""
    if sys.platform == "win32":
        return
    for folder in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                if lock(handle, wait=False):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)
