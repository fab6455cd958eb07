from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.small_disk import SmallDisk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A disk of 4 MB."""
    mounted = SmallDisk(tmp_path / "disk")
    yield mounted
    mounted.unmount()
