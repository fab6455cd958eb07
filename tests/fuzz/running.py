"""Runs cases in child processes, finds out what fails for certain, and makes it small."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from fuzz.mutation import mutate

BATCH = 1000  # cases of a child, before a new one takes its place
SECONDS = 20  # of processor time for one case; loading torch for the first one is in it
PATIENCE = 300  # seconds until an answer, whatever a child waits for; processor time is limited far below
_PATHS = os.pathsep.join(str(Path(__file__).resolve().parents[n] / name) for n, name in ((2, "src"), (1, "")))
T = TypeVar("T")


class Case(NamedTuple):
    """A file of a kind."""

    kind: str
    data: bytes


class Outcome(NamedTuple):
    """What became of a case."""

    accepted: bool
    failure: str | None = None  # the same for the same fault
    detail: str = ""


@dataclass
class Failure:
    """A fault, and the fewest and smallest cases that show it in a new process."""

    failure: str
    detail: str
    cases: list[Case]
    reproduced: bool = True


def case_of(kind: str, files: Sequence[bytes], seed: int, index: int) -> Case:
    """A mutated file, which depends on the arguments alone."""
    rng = random.Random(f"{kind} {seed} {index}")
    return Case(kind, mutate(rng.choice(files), rng))


class Child:
    """A process that reads files, one after another."""

    def __init__(self, readers: str = "fuzz.readers", seconds: float = SECONDS) -> None:
        self.cases: list[Case] = []
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        environment = {**os.environ, "PYTHONPATH": _PATHS, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fuzz.child", readers, str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
        )

    def run(self, case: Case) -> Outcome:
        """Read a file; what kills or stalls the process is a failure."""
        assert self._process.stdin is not None
        self.cases.append(case)
        head = json.dumps({"kind": case.kind, "size": len(case.data)}).encode() + b"\n"
        try:
            self._process.stdin.write(head + case.data)
            self._process.stdin.flush()
            line = self._answer()
        except BrokenPipeError:
            line = b""
        if line.endswith(b"\n"):
            return Outcome(**json.loads(line))
        return Outcome(False, self._end(), self._last_words())

    def _answer(self) -> bytes:
        assert self._process.stdout is not None
        line, until = b"", time.monotonic() + PATIENCE
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self._process.stdout], [], [], max(0, until - time.monotonic()))
            piece = os.read(self._process.stdout.fileno(), 65536) if ready else b""
            if not piece:
                break
            line += piece
        return line

    def _end(self) -> str:
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return "it hangs"
        if code == -signal.SIGPROF:
            return "it takes too long"
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"

    def _last_words(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-2000:]

    def close(self) -> None:
        """End the process."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()
        self._log.close()


@dataclass
class Runner:
    """Runs any number of cases, in one child as long as it lives."""

    readers: str = "fuzz.readers"  # the module with the kinds of files
    seconds: float = SECONDS
    _child: Child | None = field(default=None, repr=False)
    _history: list[Case] = field(default_factory=list, repr=False)  # of the child that failed last

    def run(self, case: Case) -> Outcome:
        """Run a case; the next one finds a living child."""
        if self._child is None or len(self._child.cases) >= BATCH:
            self.close()
            self._child = Child(self.readers, self.seconds)
        child = self._child
        outcome = child.run(case)
        if outcome.failure is not None:
            self._history = child.cases
            self.close()  # what follows must not depend on what failed
        return outcome

    def examine(self, outcome: Outcome) -> Failure:
        """Reproduce the failure of the last case in new processes, alone or after others, and minimize it."""
        assert outcome.failure is not None
        history, wanted = self._history, outcome.failure

        def fails(cases: Sequence[Case]) -> bool:
            self.close()
            last = Outcome(True)
            for case in cases:
                last = self.run(case)
                if last.failure is not None:
                    break
            return last.failure == wanted

        cases = history[-1:]
        if not fails(cases):
            if not fails(history):
                return Failure(wanted, outcome.detail, cases, reproduced=False)
            cases = minimize(history, fails)
        if len(cases) == 1:
            kind, data = cases[0]
            small = minimize(data, lambda part: self.run(Case(kind, bytes(part))).failure == wanted)
            cases = [Case(kind, bytes(small))]
        self.close()
        return Failure(wanted, outcome.detail, cases)

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.close()
            self._child = None


def minimize(whole: Sequence[T], fails: Callable[[Sequence[T]], bool], tries: int = 300) -> Sequence[T]:
    """Delta debugging: leave out ever smaller pieces as long as the rest still fails."""
    size = len(whole) // 2
    while size and tries:
        at = 0
        while at < len(whole) and tries:
            rest = [*whole[:at], *whole[at + size :]]
            shorter: Sequence[T] = bytes(rest) if isinstance(whole, bytes) else rest  # type: ignore[arg-type,assignment]
            tries -= 1
            if shorter and fails(shorter):
                whole = shorter
            else:
                at += size
        size //= 2
    return whole
