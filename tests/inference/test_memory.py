"""A prediction may use what the system has free, within the limit of a container."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from aanet.inference import memory

GB = 10**9


@pytest.fixture
def cgroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of the kernel's; the system has 8 GB free."""
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: SimpleNamespace(available=8 * GB))
    return tmp_path


def limit(cgroup: Path, most: str, used: int, cached: int = 0) -> None:
    (cgroup / "memory.max").write_text(f"{most}\n")
    (cgroup / "memory.current").write_text(f"{used}\n")
    (cgroup / "memory.stat").write_text(f"anon {used - cached}\ninactive_file {cached}\nactive_file 7\n")


def test_without_a_container_it_is_what_the_system_has(cgroup: Path) -> None:
    assert memory.available_memory() == 8 * GB
    limit(cgroup, "max", 3 * GB)
    assert memory.available_memory() == 8 * GB


def test_a_container_leaves_what_its_limit_leaves(cgroup: Path) -> None:
    limit(cgroup, str(4 * GB), 3 * GB)
    assert memory.available_memory() == 1 * GB
    limit(cgroup, str(40 * GB), 3 * GB)
    assert memory.available_memory() == 8 * GB
    limit(cgroup, str(4 * GB), 4 * GB + 4096)  # may pass it for a moment
    assert memory.available_memory() == 0


def test_cached_files_do_not_count_as_used(cgroup: Path) -> None:
    limit(cgroup, str(4 * GB), 4 * GB, cached=3 * GB)
    assert memory.available_memory() == 3 * GB


def test_this_machine_has_some() -> None:
    assert 10**7 < memory.available_memory() <= memory.psutil.virtual_memory().total
