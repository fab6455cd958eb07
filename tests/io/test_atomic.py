"""Files appear whole, with the usual permissions, and under names of any length."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from aanet.errors import WriteError
from aanet.io.atomic import atomic_path, write_bytes, write_together


def test_a_failure_keeps_the_older_file(tmp_path: Path) -> None:
    write_bytes(tmp_path / "file.txt", b"older")

    def fail() -> None:
        with atomic_path(tmp_path / "file.txt") as temporary:
            temporary.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file.txt", b"older")]


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_files_have_the_permissions_of_ordinary_ones(tmp_path: Path) -> None:
    write_bytes(tmp_path / "ours", b"")
    (tmp_path / "ordinary").write_bytes(b"")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ours", "ordinary")]
    assert modes[0] == modes[1]


def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path) -> None:
    write_bytes(tmp_path / f"{'n' * 251}.png", b"content")
    with pytest.raises(WriteError, match="file name too long"):
        write_bytes(tmp_path / f"{'n' * 252}.png", b"content")


def test_files_that_belong_together_are_all_written_or_none(tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()  # cannot be replaced by a file
    (tmp_path / "first").write_bytes(b"older")
    with pytest.raises(WriteError, match="already exists and is not replaced"):
        write_together(tmp_path, {tmp_path / "new": b"1", tmp_path / "first": b"2"}, overwrite=False)
    assert {path.name for path in tmp_path.iterdir()} == {"first", "second"}
    (tmp_path / "first").unlink()
    with pytest.raises(WriteError):
        write_together(
            tmp_path / "second", {tmp_path / "second/a": b"1", tmp_path / "second/b" / ("n" * 300): b"2"}
        )
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
