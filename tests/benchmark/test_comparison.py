"""The paper's table, measured: cells beside the paper's, ratios, and the picture."""

from __future__ import annotations

from pathlib import Path

import cv2
import pytest
from typer.testing import CliRunner

from aanet.benchmark import comparison, presets
from aanet.benchmark.inference import Conditions, Measurement
from aanet.benchmark.models import BenchmarkModel
from aanet.cli.main import app
from aanet.errors import AanetError
from aanet.evaluation.timing import Timing
from aanet.models.complexity import complexity

RUN = Conditions((576, 960), 3, 2, "a processor", {"torch": "2"})


def measured(network: str, seconds: float | None, memory: int | None = 2**30) -> Measurement:
    timing = None if seconds is None else Timing((seconds,))
    model = BenchmarkModel(network, network, network)
    return Measurement(model, "torch", timing, memory, complexity(network, (576, 960)))


def test_every_cell_stands_beside_the_papers() -> None:
    plain, adaptive = comparison.rows([measured("gcnet", 40.0), measured("gcnet_aa", 5.0)])
    assert plain == ("gcnet", "2.85/2.85", "1754/1754", "1.00/21.5", "40.0/3.73 s", "–", "48")
    assert adaptive[4:] == ("5.00/0.091 s", "8.0/41.0 ×", "47")


def test_what_was_not_measured_is_a_dash() -> None:
    (row,) = comparison.rows([measured("ganet_aa", None, None)])
    assert row[3:] == ("–/1.63", "–/0.057 s", "–", "–")


@pytest.mark.slow
def test_the_table_and_the_picture_are_written(tmp_path: Path) -> None:
    measurements = [measured(name, 30.0 / (i + 1)) for i, name in enumerate(presets.paper_networks())]
    text = comparison.markdown(measurements, RUN)
    assert text.count("\n| ") == 1 + 8  # the marks below the headings, and the networks
    assert "- GC-Net-AA is 1.3 × as fast as GC-Net on torch (paper, on a V100: 41.0 ×)." in text
    comparison.plot(measurements, RUN, tmp_path / "plot.png")
    assert cv2.imread(str(tmp_path / "plot.png")).std() > 5


@pytest.mark.slow
def test_the_preset_runs_end_to_end_at_a_small_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presets, "largest_common_size", lambda: (96, 192))
    files = ["--output", str(tmp_path)]
    arguments = ["benchmark", "stereonet", "stereonet_aa", "--preset", "paper", "--rounds", "1", *files]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "StereoNet-AA is" in result.stdout
    assert "…" not in result.stdout  # the table fits eighty columns
    assert {path.name for path in tmp_path.iterdir()} == {"report.md", "report.json", "chart.png"}


def test_a_network_that_is_not_in_the_table_is_named() -> None:
    result = CliRunner().invoke(app, ["benchmark", "aanet", "--preset", "paper"])
    assert isinstance(result.exception, AanetError)
    assert "aanet is not in the paper's table" in str(result.exception)
