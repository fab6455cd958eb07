"""Mutated files of every kind with a fixed seed, all files that ever failed, and the fuzzing itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz import REGRESSIONS
from fuzz.__main__ import Report, fuzz, replay
from fuzz.readers import KINDS
from fuzz.running import Case, Runner, case_of, minimize
from fuzz.structure import structure_of

CASES = 100  # of each kind
GROUPS = sorted({kind.group for kind in KINDS.values()})
SLOW = {"weights", "exported", "foreign"}  # torch, OpenVINO and ONNX Runtime


def kinds_of(group: str) -> list[str]:
    return [name for name, kind in KINDS.items() if kind.group == group]


@pytest.fixture
def planted() -> Iterator[Runner]:
    runner = Runner("fuzz.planted")
    yield runner
    runner.close()


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_mutated_files_are_read_or_refused(group: str) -> None:
    report = Report()
    fuzz(kinds_of(group), 0, lambda done: CASES - done, report)
    assert not report.failures, f"{report}\n{report.failures}"
    assert all(report.refused[kind] for kind in kinds_of(group)), str(report)


@pytest.mark.parametrize(
    "group", [pytest.param(g, marks=pytest.mark.slow) if g in SLOW else g for g in GROUPS]
)
def test_valid_files_are_read_and_so_are_their_parts_together(group: str) -> None:
    runner = Runner()
    for name in kinds_of(group):
        for content in KINDS[name].files():
            structure = structure_of(content)
            joined = content if structure is None else structure.join(structure.split(content))
            for data in {content, joined}:
                outcome = runner.run(Case(name, data))
                assert outcome.failure is None, outcome.detail
                assert outcome.accepted or not KINDS[name].accepted, name
    runner.close()


@pytest.mark.slow
def test_files_that_failed_once_do_not_fail_again() -> None:
    paths = sorted(REGRESSIONS.iterdir())
    assert paths
    for path, outcome in replay(paths).items():
        assert outcome.failure is None, f"{path}: {outcome.failure}\n{outcome.detail}"


def test_cases_depend_on_the_seed_alone() -> None:
    files = KINDS["recipe.toml"].files()
    cases = [[case_of("recipe.toml", files, seed, index) for index in range(20)] for seed in (0, 0, 1)]
    assert cases[0] == cases[1] != cases[2]
    assert len(set(cases[0])) > 15


@pytest.mark.parametrize(
    ("kind", "failure"),
    [
        ("refuse", "the message of the error is not one plain sentence"),
        ("raise", "KeyError in planted.py, _raise"),
        ("crash", "killed by SIGABRT"),
        pytest.param("memory", "too much memory", marks=pytest.mark.slow),
        pytest.param("loop", "it takes too long", marks=pytest.mark.slow),
    ],
)
def test_a_fault_is_found_and_made_small(planted: Runner, kind: str, failure: str) -> None:
    planted.seconds = 1 if kind == "loop" else planted.seconds
    assert planted.run(Case(kind, b"fine")).failure is None
    outcome = planted.run(Case(kind, b"a long way to !"))
    assert outcome.failure == failure
    found = planted.examine(outcome)
    assert found.reproduced
    assert found.cases == [Case(kind, b"!")]
    assert planted.run(Case(kind, b"fine")).failure is None  # in a new process


def test_a_fault_of_several_files_is_made_few(planted: Runner) -> None:
    contents = [b"a", b"b!", b"c", b"d", b"e?"]
    outcomes = [planted.run(Case("crash-later", content)) for content in contents]
    assert [outcome.failure for outcome in outcomes] == [None] * 4 + ["killed by SIGABRT"]
    assert planted.examine(outcomes[-1]).cases == [Case("crash-later", b"b!"), Case("crash-later", b"e?")]


@pytest.mark.slow
def test_faults_are_counted_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from fuzz import __main__ as command

    monkeypatch.setattr(command, "REGRESSIONS", tmp_path / "regressions")
    report = Report()
    with monkeypatch.context() as patch:
        patch.setitem(KINDS, "raise", KINDS["camera.json"]._replace(files=lambda: [b"a!" * 20]))
        patch.setattr(command, "Runner", lambda: Runner("fuzz.planted"))
        fuzz(["raise"], 0, lambda done: 20 - done, report)
    assert report.failed["raise"] > 10
    ((_, failure),) = report.failures.items()
    (path,) = command.keep(failure)
    assert path.read_bytes() == b"!"
    assert path.name.endswith("_raise")


def test_minimizing_leaves_what_fails() -> None:
    assert minimize(bytes(range(100)), lambda part: {7, 70} <= set(part)) == bytes((7, 70))
    assert minimize([1, 2, 3], lambda _: False) == [1, 2, 3]
