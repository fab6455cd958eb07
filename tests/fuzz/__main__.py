"""`make fuzz`: mutate and read files until the time is over; `--replay` reads kept files again."""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from fuzz import REGRESSIONS
from fuzz.readers import KINDS, Kind
from fuzz.running import Case, Failure, Outcome, Runner, case_of

ROUND = 50  # cases of a kind before the next one has its turn


@dataclass
class Report:
    """Counts by kind, and one failure for each fault."""

    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    failures: dict[tuple[str, str], Failure] = field(default_factory=dict)

    def add(self, case: Case, outcome: Outcome) -> bool:
        """Count a case; whether its failure is a new one."""
        which = self.accepted if outcome.accepted else self.refused
        which = which if outcome.failure is None else self.failed
        which[case.kind] += 1
        return outcome.failure is not None and (case.kind, outcome.failure) not in self.failures

    def __str__(self) -> str:
        rows = [("kind", "cases", "accepted", "refused", "failed")]
        counts = (self.accepted, self.refused, self.failed)
        for kind in sorted(set().union(*counts)):
            numbers = [count[kind] for count in counts]
            rows.append((kind, *map(str, (sum(numbers), *numbers))))
        totals = [sum(count.values()) for count in counts]
        rows.append(("all", *map(str, (sum(totals), *totals))))
        return "\n".join(f"{row[0]:32}" + "".join(f"{cell:>10}" for cell in row[1:]) for row in rows)


def fuzz(kinds: Iterable[str], seed: int, rounds: Callable[[int], int], report: Report) -> None:
    """Run rounds over kinds in a child of its own.

    Args:
        kinds: The kinds of files.
        seed: Cases are the same for the same seed.
        rounds: How many cases the next turn of a kind has, by the number of cases that it had; 0 ends.
        report: Where counts and failures go.
    """
    runner = Runner()
    files = {kind: KINDS[kind].files() for kind in kinds}
    done = dict.fromkeys(files, 0)
    while any(turns := {kind: rounds(done[kind]) for kind in files}.values()):
        for kind, count in zip(files, turns, strict=True):
            for index in range(done[kind], done[kind] + count):
                case = case_of(kind, files[kind], seed, index)
                outcome = runner.run(case)
                if report.add(case, outcome):
                    report.failures[kind, str(outcome.failure)] = runner.examine(outcome)
            done[kind] += count
    runner.close()


def keep(failure: Failure) -> list[Path]:
    """Write the cases of a failure as regression files; the test that replays them fails from now on."""
    digest = hashlib.sha256(b"".join(case.data for case in failure.cases)).hexdigest()[:12]
    REGRESSIONS.mkdir(exist_ok=True)
    paths = []
    for number, case in enumerate(failure.cases):
        paths.append(REGRESSIONS / f"{digest}-{number}_{case.kind}")
        paths[-1].write_bytes(case.data)
    return paths


def replay(paths: Iterable[Path]) -> dict[Path, Outcome]:
    """Read kept files again, in one child and in order."""
    runner = Runner()
    found = {path: runner.run(Case(path.name.partition("_")[2], path.read_bytes())) for path in paths}
    runner.close()
    return found


def main() -> int:
    """Run the command; 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--cases", type=int, help="cases of each kind, instead of a time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--kinds", nargs="+", choices=sorted(KINDS), default=sorted(KINDS), metavar="KIND")
    parser.add_argument("--replay", nargs="+", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.replay:
        outcomes = replay(options.replay)
        for path, outcome in outcomes.items():
            print(f"{path}: {outcome.failure or ('accepted' if outcome.accepted else 'refused')}")
            print(outcome.detail, end="\n" if outcome.detail else "")
        return int(any(outcome.failure for outcome in outcomes.values()))
    until = time.monotonic() + 60 * options.minutes

    def rounds(done: int) -> int:
        if options.cases is not None:
            return min(ROUND, options.cases - done)
        return ROUND if time.monotonic() < until else 0

    reports = [Report() for _ in range(options.jobs)]
    # Kinds of one group go to one process, which then loads their libraries only.
    by_group = sorted(options.kinds, key=lambda kind: (_kind(kind).group, kind))
    threads = []
    for index, report in enumerate(reports):
        share = by_group[index * len(by_group) // len(reports) : (index + 1) * len(by_group) // len(reports)]
        threads.append(threading.Thread(target=fuzz, args=(share, options.seed, rounds, report)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    return _print(reports)


def _kind(name: str) -> Kind:
    return KINDS[name]


def _print(reports: list[Report]) -> int:
    whole = Report()
    for report in reports:
        whole.accepted += report.accepted
        whole.refused += report.refused
        whole.failed += report.failed
        whole.failures |= report.failures
    print(whole)
    for (kind, failure), found in whole.failures.items():
        files = " ".join(str(path) for path in keep(found))
        print(f"\n{kind}: {failure}{'' if found.reproduced else ' (not reproduced)'}\n{found.detail}")
        print(f"Reproduce it with: make fuzz REPLAY='{files}'")
    return int(bool(whole.failures))


if __name__ == "__main__":
    sys.exit(main())
