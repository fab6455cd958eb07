"""Reading files: every reader of the package gets its bytes here, from regular files of a bounded size."""

from __future__ import annotations

import os
import stat

from aanet.errors import ReadError

MEGABYTE = 1_000_000
_LARGEST = 4000 * MEGABYTE
# O_NONBLOCK: opening a FIFO must not wait for a writer.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)


def read_bytes(path: str | os.PathLike[str], expected: str, limit: int = _LARGEST) -> bytes:
    """Read a regular file of at most `limit` bytes.

    Args:
        path: The file.
        expected: What it should be ("an image", "a calibration file"), for the error messages.
        limit: The largest size that is read; FIFOs, devices and folders are refused in any case.
    """
    try:
        handle = os.open(path, _FLAGS)
        try:
            data = _read(handle, path, expected, limit)
        finally:
            os.close(handle)
    except FileNotFoundError:
        raise ReadError(f"{path} does not exist; expected {expected}.") from None
    except OSError as error:
        if os.path.isdir(path):  # noqa: PTH112 - Windows refuses to open a folder
            raise ReadError(f"{path} is a folder; expected {expected}.") from None
        reason = (error.strerror or str(error)).lower()  # one is that the name is too long
        raise ReadError(f"Cannot read {str(path)[:500]}: {reason}.") from error
    except MemoryError as error:
        raise ReadError(f"{path} does not fit in the free memory.") from error
    except ReadError:
        raise
    except ValueError as error:  # a null character, or one that the file system cannot encode
        raise ReadError(f"{str(path)!r} is not a valid path; expected {expected}.") from error
    if not data:
        raise ReadError(f"{path} is empty (0 bytes); expected {expected}.")
    return data


def _read(handle: int, path: str | os.PathLike[str], expected: str, limit: int) -> bytes:
    status = os.fstat(handle)
    if stat.S_ISDIR(status.st_mode):
        raise ReadError(f"{path} is a folder; expected {expected}.")
    if not stat.S_ISREG(status.st_mode):
        raise ReadError(f"{path} is not a regular file; expected {expected}.")
    if status.st_size > limit:
        size, most = status.st_size / MEGABYTE, limit / MEGABYTE
        raise ReadError(f"{path} has {size:.1f} MB; {expected} may have at most {most:g} MB.")
    with os.fdopen(handle, "rb", closefd=False) as file:
        return file.read(status.st_size)
