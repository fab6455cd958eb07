"""A disk of a few kilobytes in memory, to fill it or to make it read-only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


class SmallDisk:
    """A file system of its own; mounting it needs the rights of an administrator, even in a container."""

    def __init__(self, folder: Path, kilobytes: int = 4000) -> None:
        self.folder = folder
        folder.mkdir()
        if sys.platform != "linux":
            pytest.skip("mounts a file system of Linux")
        if not self._mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs"):
            pytest.skip("mounting a file system is not allowed here")

    def leave_free(self, kilobytes: int) -> Path:
        """Fill the disk but for a few kilobytes; returns the file that fills it."""
        filler = self.folder / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                file.truncate(file.tell() - 1024 * kilobytes)
        return filler

    def resize(self, kilobytes: int) -> None:
        """Give it more space."""
        assert self._mount("-o", f"remount,size={kilobytes}k")

    def make_read_only(self) -> None:
        """Refuse all changes, also those of root."""
        assert self._mount("-o", "remount,ro")

    def unmount(self) -> None:
        """Give everything back."""
        subprocess.run(["umount", "-l", str(self.folder)], check=True)

    def _mount(self, *options: str) -> bool:
        try:
            words = ["mount", *options, str(self.folder)]
            return subprocess.run(words, capture_output=True, check=False).returncode == 0
        except FileNotFoundError:
            return False
