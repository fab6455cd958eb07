from __future__ import annotations

import json
from pathlib import Path

import cv2
import pytest
from typer.testing import CliRunner

from aanet.benchmark.inference import Conditions, Measurement, speedup
from aanet.benchmark.memory import peak_memory
from aanet.benchmark.report import aggregation_speedups, markdown, plot, rows
from aanet.cli.main import app
from aanet.errors import AanetError
from aanet.evaluation.timing import Timing
from aanet.models.complexity import Complexity

COST = Complexity(1, 2, 3, 4, 5, 6)
RUN = Conditions((288, 480), 3, 2, "a processor", {"torch": "2"})


def measured(network: str, engine: str, seconds: float) -> Measurement:
    return Measurement(network, engine, Timing((seconds,)), 2**30, COST)


def test_speedup_is_against_the_baseline_of_the_same_network() -> None:
    measurements = [
        measured("aanet", "baseline", 6.0),
        measured("aanet", "torch", 3.0),
        measured("stereonet_aa", "torch", 1.0),
    ]
    assert speedup(measurements[1], measurements) == pytest.approx(2.0)
    assert speedup(measurements[2], measurements) is None
    assert rows(measurements)[1][2:6] == ("3.00 s", "3.00 – 3.00", "2.00", "1.00 GB")


def test_an_engine_that_cannot_run_a_network_has_a_row_that_says_so() -> None:
    missing = Measurement("ganet", "openvino", None, None, COST)
    assert rows([missing])[0][2] == "cannot run"
    assert missing.as_dict()["median_s"] is None


def test_adaptive_networks_are_compared_with_their_3d_twins() -> None:
    measurements = [measured("gcnet", "torch", 20.0), measured("gcnet_aa", "torch", 4.0)]
    (line,) = aggregation_speedups(measurements)
    assert line == "GC-Net-AA is 5.0 × as fast as GC-Net on torch (paper, on a V100: 41.0 ×)."
    assert line in markdown(measurements, RUN)


def test_the_plot_is_a_picture(tmp_path: Path) -> None:
    measurements = [measured("aanet", "torch", 3.0), measured("psmnet", "torch", 9.0)]
    plot(measurements, RUN, tmp_path / "plot.png")
    picture = cv2.imread(str(tmp_path / "plot.png"))
    assert picture.shape[0] > 400
    assert picture.std() > 5


def test_memory_grows_with_the_image() -> None:
    small, large = peak_memory("stereonet_aa", (64, 96), 48), peak_memory("stereonet_aa", (512, 768), 48)
    assert large > small + 20e6


def test_memory_of_a_process_that_dies_is_an_error() -> None:
    with pytest.raises(AanetError, match=r"Measuring the memory of stereonet_aa failed: .*multiples of 4"):
        peak_memory("stereonet_aa", (65, 96), 48)


def test_the_command_measures_and_writes_everything(tmp_path: Path) -> None:
    arguments = (
        "benchmark stereonet_aa --engines baseline,torch --height 64 --width 96 --rounds 1 --no-memory"
    )
    files = ["--output", str(tmp_path)]
    result = CliRunner().invoke(app, [*arguments.split(), *files, "--json"])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert [row["engine"] for row in facts["measurements"]] == ["baseline", "torch"]
    assert all(row["median_s"] > 0 for row in facts["measurements"])
    assert "64×96" in facts["conditions"]
    assert "| stereonet_aa | torch |" in (tmp_path / "report.md").read_text()
    assert (tmp_path / "chart.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["no_such_net"], "There is no network 'no_such_net'"),
        (["--engines", "warp"], "There is no engine 'warp' to measure"),
        (["--preset", "mine"], "The presets are 'paper' and 'scaling'"),
        (["aanet", "--height", "50"], "multiples of 12"),
    ],
)
def test_wrong_arguments_are_named(arguments: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app, ["benchmark", *arguments])
    assert isinstance(result.exception, AanetError)
    assert sentence in str(result.exception)
