"""Handing pairs to replicas: what is repeated, what is not, and when it ends; without a cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from aanet.errors import AanetError
from aanet.web import child
from aanet.web.errors import ServiceError
from aanet.web.matching import Matched, MatchRequest
from aanet.web.settings import Settings
from aanet.web.uploads import read_pair
from helpers import fake_matcher
from helpers.fake_matcher import FAULT, FINE, SLEEP, pair

pytest.importorskip("ray.serve", reason="Ray is not installed (extra cluster)")

from ray.exceptions import ActorDiedError, ActorUnavailableError, ObjectLostError
from ray.serve.exceptions import DeploymentUnavailableError

from aanet.cluster import replica
from aanet.cluster.replica import ATTEMPTS, Outcome, Replica, Replicas

REQUEST = MatchRequest("disparity.npy", None, 1.0, check=False)
PAIR = read_pair(pair(FINE), 1_000_000)
MATCHED = Matched(b"data", "text/plain", "data.txt", {}, 1.0, 2, (0.0, 1.0, 0.0))
LOST = ObjectLostError("00" * 28, None, "")


class FakeHandle:
    """Replicas that answer as a test wants, one after the other."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.seconds: list[float] = []
        self.canceled = 0
        self.facts = SimpleNamespace(remote=self._respond)
        self.match = SimpleNamespace(remote=lambda *given: self._respond(given[-1]))

    def _respond(self, seconds: float = 0.0) -> Any:
        self.seconds.append(seconds)
        return SimpleNamespace(result=self._result, cancel=self._cancel)

    def _result(self, timeout_s: float) -> Any:
        assert timeout_s > 0
        answer = self._answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _cancel(self) -> None:
        self.canceled += 1


def replicas(monkeypatch: pytest.MonkeyPatch, handle: FakeHandle) -> Replicas:
    monkeypatch.setattr(replica.serve, "get_deployment_handle", lambda _: handle)
    return Replicas("sgbm", "sgbm", 1_000_000, at_once=2)


def match(matching: Replicas, seconds: float = 60.0) -> Matched:
    return matching.match(PAIR, REQUEST, time.monotonic() + seconds)


@pytest.mark.parametrize("lost", [ActorDiedError(), ActorUnavailableError("gone", None), LOST])
def test_a_lost_replica_is_replaced_by_another(monkeypatch: pytest.MonkeyPatch, lost: Exception) -> None:
    handle = FakeHandle(lost, lost, Outcome(MATCHED))
    assert match(replicas(monkeypatch, handle)) == MATCHED
    assert len(handle.seconds) == 3
    assert handle.seconds == sorted(handle.seconds, reverse=True)  # no attempt prolongs the time


def test_a_pair_does_not_take_down_one_replica_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    handle = FakeHandle(*[ActorDiedError()] * 9)
    with pytest.raises(ServiceError) as failure:
        match(replicas(monkeypatch, handle))
    assert (failure.value.status, failure.value.code) == (500, "matcher_failed")
    assert len(handle.seconds) == ATTEMPTS


def test_at_the_deadline_the_call_is_canceled_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    handle = FakeHandle(TimeoutError(), Outcome(MATCHED))
    with pytest.raises(TimeoutError):
        match(replicas(monkeypatch, handle))
    assert (len(handle.seconds), handle.canceled) == (1, 1)
    with pytest.raises(TimeoutError):
        match(replicas(monkeypatch, FakeHandle()), seconds=-1)
    with pytest.raises(TimeoutError):
        match(replicas(monkeypatch, FakeHandle(Outcome())))  # the replica was the first to notice


def test_an_error_of_the_pair_is_the_same_error_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    error = ServiceError(503, "full", "It is full.", {"Retry-After": "7"})
    handle = FakeHandle(Outcome(error=error.as_dict()))
    with pytest.raises(ServiceError) as failure:
        match(replicas(monkeypatch, handle))
    assert failure.value.as_dict() == error.as_dict()


def test_facts_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    matching = replicas(monkeypatch, FakeHandle(ActorDiedError(), (192, 0, "SGBM")))
    assert not matching.is_open
    assert matching.open() == matching.open() == (192, 0, "SGBM")
    assert matching.is_open
    assert matching.at_once == 2


@pytest.mark.parametrize("failure", [TimeoutError(), DeploymentUnavailableError(None)])
def test_replicas_that_do_not_start_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    with pytest.raises(AanetError, match=r"^[^\n]*sgbm[^\n]*\.$"):
        replicas(monkeypatch, FakeHandle(failure)).open()


@pytest.fixture
def fake_replica(monkeypatch: pytest.MonkeyPatch) -> Iterator[Replica]:
    for name in ("OMP_NUM_THREADS", "OPENCV_FOR_THREADS_NUM", "OPENCV_IO_MAX_IMAGE_PIXELS"):
        monkeypatch.setenv(name, "1000000")  # restored afterwards
    monkeypatch.setattr(child, "child_command", None)
    fake_matcher.use()
    opened = Replica("fake", "fake", Settings(max_pixels=1_000_000), 1)
    yield opened
    opened._model.matching.close()


def children() -> list[int]:
    return [each.pid for each in psutil.Process().children()]


def test_a_replica_stops_a_canceled_match_and_goes_on(request: pytest.FixtureRequest) -> None:
    others = set(children())  # of servers that other tests share
    fake_replica: Replica = request.getfixturevalue("fake_replica")

    async def ask(action: int, seconds: float = 60.0) -> Outcome:
        return await fake_replica.match(read_pair(pair(action), 1_000_000), REQUEST, seconds)

    async def scenario() -> None:
        assert await fake_replica.facts() == (48, 0, "fake")
        fine = await ask(FINE)
        assert fine.matched is not None
        before = set(children()) - others
        assert len(before) == 1
        task = asyncio.create_task(ask(SLEEP))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not before & set(children())  # the child process has ended
        again = await ask(FINE)
        assert again.matched is not None
        assert again.matched.data == fine.matched.data
        assert await ask(SLEEP, seconds=0.3) == Outcome()
        crashed = await ask(FAULT)
        assert crashed.error is not None
        assert crashed.error["code"] == "matcher_failed"
        assert (await ask(FINE)).matched is not None

    asyncio.run(scenario())
