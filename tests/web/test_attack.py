"""A part of `make attack`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from helpers.attack import attack, judge
from helpers.hostile_requests import Requests
from helpers.server import Server


@pytest.mark.slow
def test_hostile_requests_are_refused_and_nothing_else_happens(start: Callable[..., Server]) -> None:
    server = start("--model", "sgbm")
    outcome = attack(server, 240)
    assert outcome.faults == []
    assert outcome.growth < 100_000_000
    assert sum(outcome.responses.values()) == 240
    assert len({name.split()[1] for name in outcome.responses}) >= 6  # they are refused for different reasons
    assert "Traceback" not in server.stop()


def test_the_same_seed_gives_the_same_requests() -> None:
    assert list(Requests(3).draw(30)) == list(Requests(3).draw(30))


@pytest.mark.parametrize(
    ("response", "wrong"),
    [
        (b"HTTP/1.1 500 x\r\n\r\n", True),
        (b"HTTP/1.1 503 x\r\nx-content-type-options: nosniff\r\n\r\n", True),
        (b"HTTP/1.1 503 x\r\nretry-after: 1\r\nx-content-type-options: nosniff\r\n\r\n", False),
        (b"HTTP/1.1 400 x\r\nx-content-type-options: nosniff\r\ncontent-length: 2\r\n\r\n{}", True),
        (b"HTTP/1.1 200 x\r\n\r\n", True),
        (b"", False),
    ],
)
def test_wrong_responses_are_noticed(response: bytes, wrong: bool) -> None:
    assert (judge(response)[1] is not None) is wrong
