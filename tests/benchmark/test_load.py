"""The load test itself, against a server whose engine computes nothing."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import cv2
import psutil
import pytest

from aanet.benchmark import load, load_report
from aanet.benchmark.load import Level, growth, percentiles
from aanet.cli import benchmark as command
from aanet.errors import AanetError, InputError
from helpers.server import FAKE_COMMAND

FAKE = (sys.executable, "-c", FAKE_COMMAND)


def level(**changes: object) -> Level:
    known = {
        "clients": 2,
        "seconds": 2.0,
        "latencies": [0.1, 0.3],
        "statuses": {"200": 2, "503": 4, "none": 1},
        "retry_after": [1, 3],
        "probes": [0.001, 0.002, math.inf],
        "memory": [(0.0, 100_000_000), (1.0, 110_000_000)],
    }
    return Level(**{**known, **changes})  # type: ignore[arg-type]


def test_a_probe_without_an_answer_is_not_hidden() -> None:
    assert percentiles([0.1, 0.2, math.inf]) == {
        "p50": 0.2,
        "p90": math.inf,
        "p99": math.inf,
        "max": math.inf,
    }
    assert set(percentiles([]).values()) == {None}


def test_growth_compares_the_end_with_what_came_after_the_beginning() -> None:
    memory = [(float(i), 50 if i < 10 else 100 if i < 30 else 120) for i in range(40)]
    assert growth(level(memory=memory)) == pytest.approx(0.2)
    assert growth(level(memory=[(0.0, 100)])) == 0


def test_table_and_chart(tmp_path: Path) -> None:
    (row,) = load_report.rows([level()])
    assert row == (*("2", "1.0", "0.30 s", "0.30 s", "2", "1–3 s", "1", "2 ms", "inf ms", "110 MB"),)
    assert len(row) == len(load_report.HEADINGS)
    load_report.plot([level(), level(clients=4, latencies=[])], "a title", tmp_path / "chart.png")
    assert cv2.imread(str(tmp_path / "chart.png")).std() > 5


def test_more_clients_than_connections_are_refused() -> None:
    server = load.LoadedServer(None, "127.0.0.1", 1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="from 1 to 250"):
        load.measure(server, b"", [251], 1)


@pytest.mark.slow
def test_the_command_measures_a_server_and_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start_server = load.start_server
    monkeypatch.setattr(load, "start_server", lambda model: start_server(model, FAKE))
    children = set(psutil.Process().children(recursive=True))
    size = {"height": 48, "width": 96, "seconds": 0.8}
    command.benchmark(["sgbm"], serve=True, clients="1,24", output=tmp_path, as_json=True, **size)
    levels = json.loads(capsys.readouterr().out)["levels"]
    assert [each["clients"] for each in levels] == [1, 24]
    assert set(levels[0]["statuses"]) == {"200"}
    assert set(levels[1]["statuses"]) == {"200", "503"}
    assert levels[1]["retry_after"][0] >= 1
    for each in levels:
        assert each["matched_per_second"] > 0
        assert each["latency_s"]["p50"] <= each["latency_s"]["max"]
        assert math.isfinite(each["probe_s"]["max"])
        assert each["memory"][0][1] > 20_000_000
    assert (tmp_path / "report.md").read_text().count("\n| ") == 3
    assert {each.name for each in tmp_path.iterdir()} == {"report.md", "report.json", "chart.png"}
    assert set(psutil.Process().children(recursive=True)) <= children


@pytest.mark.slow
def test_a_soak_fails_if_the_memory_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    start_server = load.start_server
    monkeypatch.setattr(load, "start_server", lambda model: start_server(model, FAKE))
    grown = iter(range(100, 10_000, 100))
    monkeypatch.setattr(load.LoadedServer, "memory", lambda _: next(grown))
    with pytest.raises(AanetError, match="grew"):
        command.benchmark(["sgbm"], serve=True, soak=0.03, height=48, width=96)


def test_a_server_that_does_not_start_is_one_sentence() -> None:
    with pytest.raises(AanetError, match="did not start"), load.start_server("sgbm", ("false",)):
        pass


STARTED = """
import sys
from aanet.benchmark import load
with load.start_server("sgbm", (sys.executable, "-c", sys.argv[1])) as server:
    print(server.process.pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with the one that started it")
def test_the_server_ends_with_a_command_that_is_killed() -> None:
    command = [sys.executable, "-c", STARTED, FAKE_COMMAND]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        server = psutil.Process(int(process.stdout.readline()))
        assert server.is_running()
    finally:
        process.kill()
        process.communicate()
    server.wait(timeout=60)
