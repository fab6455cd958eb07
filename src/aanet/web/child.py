"""A matcher in a child process, which can be stopped and whose crash costs one request, not the server.

The parent writes frames (a length, then that many bytes) to the child's standard input: first the model, then
one pickled pair per request. The child answers each with a frame of JSON and a frame of data; nothing that it
writes is unpickled. When the parent ends in whatever way, its end of the pipe closes and the child exits.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

import psutil

from aanet.errors import AanetError
from aanet.matcher import StereoMatcher
from aanet.web.errors import ServiceError, internal, stopping
from aanet.web.logs import start_log
from aanet.web.matching import Facts, Matched, Matchers, MatchRequest, Opener, as_json, from_json
from aanet.web.uploads import UploadedPair

log = logging.getLogger("aanet.web")

OPEN_SECONDS = 300.0  # converting a network takes long the first time
NICENESS = 5  # so that the server answers at once while all processors match
_MAX_HEADER_BYTES = 1_000_000
_MAX_BYTES_PER_PIXEL = 64  # of an encoded result; the largest, all arrays, has 16
_LENGTH = struct.Struct(">Q")
_Answer = tuple[dict[str, Any], bytes]


def child_command() -> list[str]:
    """Return the command of a child process."""
    return [sys.executable, "-c", "from aanet.web.child import serve; serve()"]


class MatcherProcess:
    """The parent's side: `Matchers` in a process, which is started on first use and after each failure."""

    at_once = 1

    def __init__(self, name: str, source: str, max_pixels: int, *, network_spec: str | None = None) -> None:
        self._name = name
        self._first = pickle.dumps((name, source, max_pixels, network_spec))
        self._max_bytes = _MAX_BYTES_PER_PIXEL * max_pixels + 1_000_000
        self._process: subprocess.Popen[bytes] | None = None
        self._facts: Facts | None = None
        self._lock = threading.Lock()  # between starting and closing
        self._closed = False

    @property
    def is_open(self) -> bool:
        """See `Matching`."""
        return self._facts is not None and self._process is not None and self._process.poll() is None

    @property
    def memory(self) -> int:
        """See `Matching`."""
        process = self._process
        with contextlib.suppress(psutil.Error):
            return 0 if process is None else int(psutil.Process(process.pid).memory_info().rss)
        return 0

    def open(self) -> Facts:
        """See `Matching`; raises `AanetError` if the model cannot be opened."""
        if self._facts is not None and self.is_open:
            return self._facts
        self._end()
        # The child must find the same packages, even if sys.path was changed after startup.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with self._lock:
            if self._closed:
                raise stopping()
            self._process = subprocess.Popen(
                child_command(), env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        try:
            answer, _ = self._exchange(self._first, OPEN_SECONDS)
        except TimeoutError:
            raise AanetError(f"{self._name} was not open within {OPEN_SECONDS:g} seconds.") from None
        except _EndedError as ended:
            if self._closed:
                raise stopping() from None
            raise AanetError(f"The process that opened {self._name} ended with {ended}.") from None
        if "error" in answer:
            self._end()
            raise AanetError(str(answer["error"]))
        self._facts = Facts(*answer["facts"])
        return self._facts

    def match(self, pair: UploadedPair, request: MatchRequest, deadline: float) -> Matched:
        """See `Matching`; at the deadline the process is killed and `TimeoutError` raised."""
        self.open()
        remaining = deadline - time.monotonic()
        if remaining <= 0:  # opening may take longer than a request
            raise TimeoutError
        try:
            answer, data = self._exchange(pickle.dumps((pair, request)), remaining)
        except _EndedError as ended:
            log.error("the process of the matcher %s ended with %s", self._name, ended)
            message = "The matcher failed on this pair and was started again."
            raise ServiceError(500, "matcher_failed", message) from None
        if "error" in answer:
            raise ServiceError(**answer["error"])
        return from_json(answer, data)

    def close(self) -> None:
        """See `Matching`; a running match fails."""
        with self._lock:
            self._closed = True
        self._end()

    def _exchange(self, message: bytes, seconds: float) -> _Answer:
        """Send a message and wait for the answer, or kill the process."""
        process, expired = self._process, threading.Event()
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None

        def expire() -> None:
            expired.set()
            process.kill()

        timer = threading.Timer(seconds, expire)
        timer.daemon = True
        timer.start()
        try:
            write_frame(process.stdin, message)
            answer = json.loads(read_frame(process.stdout, _MAX_HEADER_BYTES))
            return answer, read_frame(process.stdout, self._max_bytes)
        except (OSError, EOFError, ValueError):  # it has ended, or does not follow the protocol
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.2)  # its pipes close before it has ended
            code = self._end()
            if expired.is_set():
                raise TimeoutError from None
            raise _EndedError(_exit_reason(code)) from None
        finally:
            timer.cancel()
            timer.join()
            if expired.is_set():
                self._end()

    def _end(self) -> int:
        """Kill the process, if there is one, close its pipes, and return its exit code."""
        process, self._process, self._facts = self._process, None, None
        if process is None:
            return 0
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what could not be sent
                assert pipe is not None
                pipe.close()
        return process.wait()


class _EndedError(Exception):
    """A child process has ended by itself; the message tells how."""


def _exit_reason(code: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"exit code {code}"


def write_frame(pipe: IO[bytes], data: bytes) -> None:
    """Write the length of the data, and the data."""
    pipe.write(_LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def read_frame(pipe: IO[bytes], max_bytes: int) -> bytes:
    """Read what `write_frame` has written; raises `EOFError` if the other side has ended."""
    (length,) = _LENGTH.unpack(_read_exactly(pipe, _LENGTH.size))
    if length > max_bytes:
        raise ValueError(f"{length} bytes are too many")
    return _read_exactly(pipe, length)


def _read_exactly(pipe: IO[bytes], length: int) -> bytes:
    """Read from a pipe that may return less than asked for."""
    parts = []
    while length:
        part = pipe.read(length)
        if not part:
            raise EOFError
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def serve(opener: Opener = StereoMatcher) -> None:
    """Run the child's side: open the model, then answer requests until the parent ends."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # sent to the whole group; the parent finishes its requests
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    start_log()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not get between the frames
    # Unbuffered: a process that a library forks could never end if a thread held the lock of a buffer.
    requests = os.fdopen(os.dup(0), "rb", buffering=0)
    _yield_resources()
    received: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(requests, received.put), daemon=True).start()
    name, source, max_pixels, network_spec = pickle.loads(received.get())
    matchers = Matchers(name, source, max_pixels, opener, network_spec=network_spec)
    try:
        _answer(answers, {"facts": matchers.open()})
    except AanetError as error:
        _answer(answers, {"error": str(error)})
    while True:
        pair, request = pickle.loads(received.get())
        try:
            matched = matchers.match(pair, request, deadline=0)
            _answer(answers, as_json(matched), matched.data)
        except ServiceError as error:
            _answer(answers, {"error": error.as_dict()})
        except Exception:
            log.exception("a match failed")
            _answer(answers, {"error": internal().as_dict()})


def _receive(pipe: IO[bytes], put: Callable[[bytes], None]) -> None:
    """Hand messages on, in a thread of its own, so that the process exits even while it matches."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            put(read_frame(pipe, sys.maxsize))
    os._exit(0)


def _answer(pipe: IO[bytes], answer: dict[str, Any], data: bytes = b"") -> None:
    write_frame(pipe, json.dumps(answer).encode())
    write_frame(pipe, data)


def _yield_resources() -> None:
    """Let the server have processors and memory first."""
    if sys.platform == "win32":
        return
    import resource

    os.nice(NICENESS)
    with contextlib.suppress(OSError):  # only on Linux: the child is killed first when memory runs out
        Path("/proc/self/oom_score_adj").write_text("1000")
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    finite = [each for each in (soft, hard) if each != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min([psutil.virtual_memory().total, *finite]), hard))
