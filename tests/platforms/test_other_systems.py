"""What Windows and macOS lack or do differently, on this system with the difference faked."""

from __future__ import annotations

import ctypes
import errno
import os
import pickle
import signal
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

# All at the top: the libraries must be loaded before a test fakes another system.
from aanet.benchmark import memory
from aanet.engines import bf16_support
from aanet.engines.foreign import child as foreign_child
from aanet.engines.foreign import inspection, recognition
from aanet.io import atomic, locking, storage
from aanet.training import batches
from aanet.training.dry_run import _peak_memory
from aanet.training.environment import on_stop_signal
from aanet.training.recipe import AugmentationSpec, DataSpec
from aanet.web import child


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let the package believe that it runs on Windows, which has none of the modules of POSIX."""
    monkeypatch.setattr(sys, "platform", "win32")
    for module in ("fcntl", "resource"):
        monkeypatch.setitem(sys.modules, module, None)  # importing it would fail
    return monkeypatch


class FakeLocks(ModuleType):
    """`msvcrt`: locks that somebody else holds raise its errors."""

    LK_LOCK, LK_NBLCK = 1, 2

    def __init__(self, error: int | None) -> None:
        super().__init__("msvcrt")
        self.error, self.calls = error, []

    def locking(self, _handle: int, mode: int, size: int) -> None:
        self.calls.append((mode, size))
        if self.error is not None:
            raise OSError(self.error, os.strerror(self.error))


@pytest.mark.parametrize(
    ("error", "locked"), [(None, True), (errno.EACCES, False), (errno.EDEADLK, False), (errno.EINVAL, None)]
)
def test_windows_locks_a_byte_of_the_file(
    windows: pytest.MonkeyPatch, error: int | None, locked: bool | None
) -> None:
    fake: Any = FakeLocks(error)
    windows.setitem(sys.modules, "msvcrt", fake)
    if locked is None:
        with pytest.raises(OSError, match="nvalid"):
            locking.lock(0, wait=True)
        assert locking.lock_if_possible(0)  # a file system without locks
    else:
        assert locking.lock(0, wait=True) is locked
        assert locking.lock(0, wait=False) is locked
        assert fake.calls == [(fake.LK_LOCK, 1), (fake.LK_NBLCK, 1)]


def refuse_folders(path: Any, *arguments: Any, open_file: Any = os.open, **options: Any) -> int:
    """`os.open` of Windows."""
    if Path(path).is_dir():
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    return open_file(path, *arguments, **options)


def test_windows_writes_files_without_locks_of_folders(windows: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module in (atomic, locking):  # and not shutil, which opens folders only where that is possible
        windows.setattr(module, "os", SimpleNamespace(**{**vars(os), "open": refuse_folders}))
    other = tmp_path / f"{atomic.PREFIX}other"  # of a process that may be alive: nobody can tell
    other.mkdir()
    atomic.write_bytes(tmp_path / "one.txt", b"1")
    atomic.write_together(tmp_path, {tmp_path / "one.txt": b"2", tmp_path / "two.txt": b"3"})
    assert {path.name for path in tmp_path.iterdir()} == {"one.txt", "two.txt", other.name}
    assert (tmp_path / "one.txt").read_bytes() == b"2"
    with locking.locked_folder(tmp_path, "It is locked."):
        pass


def test_a_file_that_windows_keeps_open_stays_and_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "map.npy").write_bytes(b"old")

    def refuse(_self: Path, target: Path) -> None:
        raise PermissionError(errno.EACCES, "The process cannot access the file", str(target))

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(atomic.WriteError, match=r"map\.npy: the process cannot access the file\."):
        atomic.write_bytes(tmp_path / "map.npy", b"new")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_file_urls_of_windows_have_a_drive(windows: pytest.MonkeyPatch) -> None:
    assert storage.local_path("file:///C:/my%20data") == Path("C:/my data")
    assert storage.local_path("C:\\data") == Path("C:\\data")  # not a URL of the scheme C
    windows.undo()
    assert storage.local_path("file:///my%20data") == Path("/my data")


def test_workers_need_no_alarm(windows: pytest.MonkeyPatch) -> None:
    installed: dict[int, Any] = {}
    fake = SimpleNamespace(SIGINT=2, SIGTERM=15, SIG_IGN="ignored", signal=installed.__setitem__)
    windows.setattr(batches, "signal", fake)
    windows.setattr(batches, "prepare_worker", lambda _: None)
    batches._start_worker(0)
    assert installed == {2: "ignored"}


def test_training_stops_on_signals_where_there_is_no_sigchld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "SIGCHLD", raising=False)
    before, asked = signal.getsignal(signal.SIGTERM), []
    with on_stop_signal(lambda: asked.append("stop")):
        signal.raise_signal(signal.SIGTERM)
    assert asked == ["stop"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_windows_has_no_limits_of_memory(windows: pytest.MonkeyPatch) -> None:
    modes: list[int] = []
    kernel = SimpleNamespace(SetErrorMode=modes.append)
    windows.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)
    foreign_child._limit(10**9)
    assert modes == [3]  # no dialog after a crash
    child._yield_resources()
    assert recognition._memory() == 0
    assert recognition._bytes_per_pixel(0, 100) == recognition._UNKNOWN_MEMORY
    assert _peak_memory(torch.device("cpu")) is None


@pytest.mark.skipif(sys.platform == "win32", reason="resource is a module of POSIX")
def test_macos_counts_memory_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    monkeypatch.setattr(resource, "getrusage", lambda _: SimpleNamespace(ru_maxrss=5000))
    monkeypatch.setattr(memory, "_STATUS", Path("no such file"))
    for system, expected in (("darwin", 5000), ("linux", 5000 * 1024)):
        monkeypatch.setattr(sys, "platform", system)
        assert _peak_memory(torch.device("cpu")) == memory.peak_of_this_process() == expected


def test_exit_codes_of_windows_are_no_signals() -> None:
    access_violation = 0xC0000005
    for reason in (bf16_support._exit_reason, inspection._end, child._exit_reason):
        assert reason(access_violation) == "exit code 3221225477"
        assert reason(-int(signal.SIGTERM)) == "SIGTERM"


def test_what_workers_receive_can_be_pickled() -> None:
    """Workers are started with `spawn` on Windows and macOS, and with `forkserver` from Python 3.14 on."""
    everything = AugmentationSpec(
        asymmetric_color=0.5, erase=0.5, log2_scale=(-0.5, 0.5), log2_stretch=0.2, vertical_shift=0.5
    )
    source = batches.open_source(DataSpec("synthetic", length=4), (48, 96), 48)
    pairs = batches.AugmentedPairs(source, batches.make_augmentation(everything, (48, 96)), 3)
    for sent in (pairs, batches.collate, batches._start_worker):
        assert pickle.loads(pickle.dumps(sent)) is not None
