"""Where outputs go: a folder, or a URL that fsspec opens, such as s3://bucket/results."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Protocol
from urllib.parse import unquote, urlsplit

from aanet.errors import InputError, MissingExtraError, ReadError, WriteError
from aanet.io import files
from aanet.io.atomic import report_as_write_error, write_bytes, write_together
from aanet.io.files import MEGABYTE

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+::)*[A-Za-z][A-Za-z0-9+.-]+://")


class Storage(Protocol):
    """A place for files with relative names, which may contain "/"."""

    def location(self, name: str) -> str:
        """The path or URL of a file."""

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file completely or not at all."""

    def write_together(self, contents: Mapping[str, bytes], overwrite: bool = True) -> None:
        """Write files that belong together; existing ones are an error unless they may be replaced."""

    def names(self) -> list[str]:
        """The files directly in this place, sorted; none if it does not exist."""

    def remove(self, *names: str) -> None:
        """Remove files, or folders with all that is in them; they need not exist."""


class Folder:
    """A folder of this machine, or one that several machines have mounted."""

    def __init__(self, path: Path, alone: bool = False) -> None:
        """Use a folder.

        Args:
            path: The folder; it is created with the first file.
            alone: Whether no other process writes the same files.
        """
        self.path, self.alone = path, alone

    def location(self, name: str) -> str:
        """The path of a file."""
        return str(self.path / name)

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        return (self.path / name).is_file()

    def write_together(self, contents: Mapping[str, bytes], overwrite: bool = True) -> None:
        """Write files under temporary names and rename them all."""
        paths = {self.path / name: data for name, data in contents.items()}
        write_together(self.path, paths, overwrite, self.alone)

    def write(self, name: str, data: bytes) -> None:
        """Write a file under a temporary name and rename it."""
        write_bytes(self.path / name, data)

    def names(self) -> list[str]:
        """The files directly in the folder."""
        return sorted(file.name for file in self.path.glob("[!.]*") if file.is_file())

    def remove(self, *names: str) -> None:
        """Remove files and folders."""
        with report_as_write_error(self.path):
            for path in (self.path / name for name in names):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


class Bucket:
    """A URL of object storage, which has a file only when it is complete."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def location(self, name: str) -> str:
        """The URL of a file."""
        return f"{self.url}/{name}"

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        return exists(self.location(name))

    def write_together(self, contents: Mapping[str, bytes], overwrite: bool = True) -> None:
        """Write the files one after the other."""
        for name in contents:
            if not overwrite and self.exists(name):
                raise WriteError(f"{self.location(name)} already exists and is not replaced.")
        for name, data in contents.items():
            self.write(name, data)

    def write(self, name: str, data: bytes) -> None:
        """Write an object."""
        with _filesystem(self.location(name), WriteError, "write") as (system, path):
            system.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH120 - not of this machine
            system.pipe_file(path, data)

    def names(self) -> list[str]:
        """The objects directly below the URL."""
        with _filesystem(self.url, ReadError, "read") as (system, path):
            system.invalidate_cache()
            found = system.ls(path, detail=True) if system.exists(path) else []
        return sorted(each["name"].rpartition("/")[2] for each in found if each["type"] == "file")

    def remove(self, *names: str) -> None:
        """Remove objects."""
        for name in names:
            with _filesystem(self.location(name), WriteError, "remove") as (system, path):
                if system.exists(path):
                    system.rm(path, recursive=True)


def open_storage(place: str, alone: bool = False) -> Storage:
    """The storage that a path or URL means; `alone` is that of `Folder`."""
    local = local_path(place)
    return Bucket(place) if local is None else Folder(local, alone)


def is_url(place: str) -> bool:
    """Whether this is a URL and not a path."""
    return _URL.match(place) is not None


def local_path(place: str) -> Path | None:
    """The path of a file or folder of this machine, also if it is given as file://; None for other URLs."""
    if not is_url(place):
        return Path(place)
    parts = urlsplit(place)
    if parts.scheme != "file":
        return None
    if parts.netloc not in ("", "localhost"):
        raise InputError(
            f"{place[:200]} names another computer; a file URL has three slashes, as file:///data."
        )
    path = unquote(parts.path)
    if sys.platform == "win32":
        path = path.removeprefix("/")  # file:///C:/data
    return Path(path)


def join(base: str, name: str) -> str:
    """A name of a list, relative to the list's folder or URL unless it is absolute."""
    if is_url(name) or not is_url(base):
        return name if is_url(name) else str(Path(base) / name)
    return name if name.startswith("/") else f"{base.rstrip('/')}/{name}"


def absolute(place: str) -> str:
    """The path without the folder that this process is in; URLs stay as they are."""
    return place if is_url(place) else str(Path(place).absolute())


def parent(place: str) -> str:
    """The folder of a path or URL."""
    return place.rpartition("/")[0] if is_url(place) else str(Path(place).parent)


def exists(place: str) -> bool:
    """Whether there is a file or folder."""
    local = local_path(place)
    if local is not None:
        return local.exists()
    with _filesystem(place, ReadError, "read") as (system, path):
        return bool(system.exists(path))


def read_bytes(place: str, expected: str, limit: int) -> bytes:
    """Read a file of at most `limit` bytes, as `aanet.io.files.read_bytes` does for paths."""
    local = local_path(place)
    if local is not None:
        return files.read_bytes(local, expected, limit)
    with _filesystem(place, ReadError, "read") as (system, path), system.open(path, "rb") as file:
        data: bytes = file.read(limit + 1)
    if len(data) > limit:
        raise ReadError(f"{place} is too large; {expected} may have at most {limit / MEGABYTE:g} MB.")
    if not data:
        raise ReadError(f"{place} is empty (0 bytes); expected {expected}.")
    return data


@contextlib.contextmanager
def open_reading(place: str) -> Iterator[IO[bytes]]:
    """Open a file for reading; for what is too large to be read at once."""
    local = local_path(place)
    if local is not None:
        try:
            file: IO[bytes] = local.open("rb")
        except OSError as error:
            raise ReadError(f"Cannot read {place}: {(error.strerror or str(error)).lower()}.") from error
        with file:
            yield file
        return
    with _filesystem(place, ReadError, "read") as (system, path):
        opened = system.open(path, "rb")
    with opened:
        yield opened


def find_files(url: str) -> list[str]:
    """The names of all files below a URL, relative to it and sorted."""
    with _filesystem(url, ReadError, "read") as (system, path):
        found = system.find(path)
    return sorted(name[len(path.rstrip("/")) + 1 :] for name in found)


@contextlib.contextmanager
def _filesystem(place: str, kind: type[ReadError | WriteError], verb: str) -> Iterator[tuple[Any, str]]:
    """The file system of a URL and the path in it; whatever fails there is one sentence."""
    system, path = url_filesystem(place)
    try:
        yield system, path
    except FileNotFoundError as error:
        raise kind(f"{place} does not exist.") from error
    except PermissionError as error:
        raise kind(f"Cannot {verb} {place}: permission denied.") from error
    except Exception as error:  # each file system has exceptions of its own
        words = " ".join((getattr(error, "strerror", None) or str(error) or type(error).__name__).split())
        raise kind(f"Cannot {verb} {place}: {words[:200].rstrip('.')}.") from error


def url_filesystem(place: str) -> tuple[Any, str]:
    """The fsspec file system of a URL and the path in it."""
    try:
        import fsspec
    except ImportError as error:
        raise MissingExtraError(
            f"{place[:200]} is a URL; install what opens it with pip install 'aanet[cluster]'."
        ) from error
    if "::" in place:
        raise InputError(f"{place[:200]} is a chain of URLs; give a single one.")
    try:
        system, path = fsspec.core.url_to_fs(place)
        return system, str(path)
    except ImportError as error:  # such as s3fs
        raise MissingExtraError(f"Cannot open {place[:200]}: {' '.join(str(error).split())}.") from error
    except Exception as error:  # an unknown protocol, or credentials that cannot be used
        raise InputError(f"Cannot open {place[:200]}: {' '.join(str(error).split())[:200]}.") from error
