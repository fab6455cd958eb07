from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

LONGEST = 300  # seconds of a test


@pytest.fixture
def ends_by_itself() -> Iterator[None]:
    """Interrupt a test that waits for a cluster forever."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"The test took more than {LONGEST} seconds.")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
