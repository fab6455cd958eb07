"""A matcher that hangs, crashes or takes too much memory costs one request."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from aanet.errors import AanetError
from aanet.web import child
from aanet.web.child import MatcherProcess
from aanet.web.errors import ServiceError
from aanet.web.matching import Matched, MatchRequest
from aanet.web.uploads import read_pair
from helpers import fake_matcher
from helpers.fake_matcher import ALLOCATE, FAULT, FINE, FORK, KILL, PRINT, RAISE, SLEEP, pair
from helpers.server import FAKE_COMMAND, Server

REQUEST = MatchRequest("disparity.npy", None, 1.0, check=False)
COMMAND = child.child_command
LONG = 60.0  # seconds
MEGABYTE = 1_000_000

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals of POSIX")


@pytest.fixture(scope="module")
def matching() -> Iterator[MatcherProcess]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child, "child_command", None)
        fake_matcher.use()
        matching = MatcherProcess("fake", "fake", 1_000_000)
        yield matching
        matching.close()
        assert matching.memory == 0


def match(matching: MatcherProcess, action: int, seconds: float = LONG) -> Matched:
    return matching.match(read_pair(pair(action), 1_000_000), REQUEST, time.monotonic() + seconds)


def pid(matching: MatcherProcess) -> int:
    assert matching._process is not None
    return matching._process.pid


def assert_fine(matching: MatcherProcess) -> None:
    matched = match(matching, FINE)
    assert (matched.media_type, matched.file_name) == ("application/octet-stream", "disparity.npy")
    assert matched.data.startswith(b"\x93NUMPY")
    assert len(matched.spans) == 3


def test_the_facts_are_those_of_the_engine(matching: MatcherProcess) -> None:
    assert matching.open() == (48, 0, "fake")
    assert matching.is_open
    assert_fine(matching)


def test_a_match_that_does_not_end_is_stopped(matching: MatcherProcess) -> None:
    matching.open()
    before = pid(matching)
    with pytest.raises(TimeoutError):
        match(matching, SLEEP, seconds=0.3)
    assert not matching.is_open
    assert not psutil.pid_exists(before)
    assert_fine(matching)


def test_a_request_whose_time_has_passed_is_not_begun(matching: MatcherProcess) -> None:
    matching.open()
    before = pid(matching)
    with pytest.raises(TimeoutError):
        match(matching, FINE, seconds=-1)
    assert_fine(matching)
    assert pid(matching) == before


@pytest.mark.parametrize(("action", "name"), [(KILL, "SIGKILL"), (FAULT, "SIGSEGV")])
def test_a_crash_costs_one_request(
    matching: MatcherProcess, caplog: pytest.LogCaptureFixture, action: int, name: str
) -> None:
    with pytest.raises(ServiceError) as failure:
        match(matching, action)
    assert (failure.value.status, failure.value.code) == (500, "matcher_failed")
    assert name in caplog.text
    assert_fine(matching)


@pytest.mark.parametrize(
    ("action", "status", "code"), [(ALLOCATE, 413, "too_much_memory"), (RAISE, 500, "internal")]
)
def test_an_error_does_not_even_cost_the_process(
    matching: MatcherProcess, action: int, status: int, code: str
) -> None:
    matching.open()
    before = pid(matching)
    for _ in range(3):
        with pytest.raises(ServiceError) as failure:
            match(matching, action)
        assert (failure.value.status, failure.value.code) == (status, code)
    assert_fine(matching)
    assert pid(matching) == before


def test_what_a_library_prints_does_not_disturb(matching: MatcherProcess) -> None:
    assert match(matching, PRINT).data == match(matching, FINE).data


def test_a_process_that_a_library_forks_can_end(matching: MatcherProcess) -> None:
    assert match(matching, FORK).data == match(matching, FINE).data


def test_memory_does_not_accumulate(matching: MatcherProcess) -> None:
    for _ in range(20):
        assert_fine(matching)
    before = matching.memory
    for _ in range(200):
        assert_fine(matching)
    assert 0 < matching.memory < before + 10 * MEGABYTE


def test_a_model_that_cannot_be_opened_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "child_command", COMMAND)
    with pytest.raises(AanetError, match=r"nothing\.safetensors"):
        MatcherProcess("nothing", "nothing.safetensors", 1000).open()


def test_a_process_that_dies_while_it_opens_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "child_command", lambda: ["false"])
    with pytest.raises(AanetError, match="ended with exit code 1"):
        MatcherProcess("it", "it", 1000).open()


def test_a_closed_one_is_not_opened_again(matching: MatcherProcess) -> None:
    del matching  # for its command
    closed = MatcherProcess("fake", "fake", 1000)
    closed.close()
    with pytest.raises(ServiceError, match="stopping"):
        closed.open()


def only_child(server: Server) -> psutil.Process:
    (found,) = psutil.Process(server.process.pid).children()
    return found


@pytest.mark.slow
def test_a_server_survives_its_matcher(start: Callable[..., Server]) -> None:
    server = start("--model", "sgbm", "--timeout", "3", command=FAKE_COMMAND)
    for action, status, code in ((SLEEP, 503, "timeout"), (FAULT, 500, "matcher_failed")):
        response = server.match(pair(action))
        assert (response.status_code, response.json()["code"]) == (status, code)
        while server.match(pair(FINE)).status_code != 200:  # 503 until the process has been started again
            time.sleep(0.1)
    metrics = server.get("/metrics").text
    assert 'aanet_matcher_restarts_total{model="sgbm"} 2.0' in metrics
    assert 'aanet_matcher_memory_bytes{model="sgbm"} 0.0' not in metrics
    process = only_child(server)
    server.stop()
    assert not process.is_running()


@pytest.mark.slow
@pytest.mark.parametrize("busy", [False, True])
def test_the_child_ends_with_a_killed_server(start: Callable[..., Server], busy: bool) -> None:
    server = start("--model", "sgbm", command=FAKE_COMMAND)
    process = only_child(server)
    if busy:
        import threading

        def ask() -> None:
            with pytest.raises(Exception, match="disconnected"):
                server.match(pair(SLEEP))

        asking = threading.Thread(target=ask)
        asking.start()
        while not server.taken():
            time.sleep(0.02)
    server.process.kill()
    process.wait(20)
    if busy:
        asking.join()
