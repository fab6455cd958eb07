"""Error against time: scores against closed forms, and the command end to end."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

from aanet.benchmark import accuracy
from aanet.cli.main import app
from aanet.data.motorcycle import motorcycle
from aanet.data.sample import StereoSample
from aanet.errors import InputError
from aanet.evaluation.protocols import protocol_of
from aanet.matcher import StereoMatcher
from helpers.fake_engine import FakeEngine


def pairs(*disparities: float) -> accuracy.Pairs:
    """Pairs of constant disparity, 32×64."""
    image = np.random.default_rng(0).integers(0, 255, (32, 64, 3), np.uint8)
    known = np.ones((32, 64), bool)
    samples = [
        StereoSample(f"pair {value}", image, image, np.full((32, 64), value, np.float32), known)
        for value in disparities
    ]
    return accuracy.Pairs("made up", samples, range(len(samples)), protocol_of("folder"))


def matchers() -> dict[str, StereoMatcher]:
    return {str(value): FakeEngine(value).matcher for value in (5.0, 8.0)}


def test_every_matcher_is_scored_at_every_scale() -> None:
    calls = []
    points = accuracy.measure_accuracy(
        matchers(), {"1": 1.0, "0.5": 0.5}, pairs(5.0, 6.0), 3, lambda: calls.append(1)
    )
    assert [(point.model, point.scale) for point in points] == [
        ("5.0", "1"),
        ("5.0", "0.5"),
        ("8.0", "1"),
        ("8.0", "0.5"),
    ]
    # The engine predicts a constant in pixels of what it is given, so that half the size doubles it.
    assert [point.epe for point in points] == pytest.approx([0.5, 4.5, 2.5, 10.5])
    assert [point.bad2 for point in points] == pytest.approx([0, 100, 50, 100])
    assert all(point.seconds > 0 and point.engine == "fake" for point in points)
    assert len(calls) == 4 * (1 + 3 * 2)


def test_the_sample_pair_and_datasets_are_opened_by_name(tmp_path: Path) -> None:
    sample = accuracy.open_pairs("motorcycle")
    assert list(sample.indices) == [0]
    assert np.array_equal(sample.source[0].left, motorcycle().left)
    with pytest.raises(InputError, match="motorcycle or DATASET=FOLDER"):
        accuracy.open_pairs("kitti2015")
    with pytest.raises(InputError, match="nonsense"):
        accuracy.open_pairs(f"nonsense={tmp_path}")


@pytest.mark.parametrize("text", ["", "half", "1;2"])
def test_scales_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"[Ss]cale"):
        accuracy.parse_scales(text)


def test_scales_are_numbers_and_auto() -> None:
    assert accuracy.parse_scales("0.5, 1,auto") == {"0.5": 0.5, "1": 1.0, "auto": "auto"}


def test_the_chart_is_drawn(tmp_path: Path) -> None:
    found = pairs(5.0)
    points = accuracy.measure_accuracy(matchers(), {"1": 1.0, "0.5": 0.5}, found)
    accuracy.plot_accuracy(points, found, "a machine", tmp_path / "chart.png")
    picture = cv2.imread(str(tmp_path / "chart.png"))
    assert picture is not None
    assert picture.shape[1] > 1000
    assert picture.std() > 5


def test_the_command_writes_table_numbers_and_chart(tmp_path: Path) -> None:
    given = ["benchmark", "sgbm", "--accuracy", "motorcycle", "--scales", "0.25,0.5", "--rounds", "1"]
    result = CliRunner().invoke(app, [*given, "-o", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    measured = json.loads((tmp_path / "report.json").read_text())
    assert json.loads(result.stdout) == measured
    coarse, fine = measured["points"]
    assert coarse["epe"] > fine["epe"] > 0
    assert "| sgbm | 0.25 |" in (tmp_path / "report.md").read_text()
    assert (tmp_path / "chart.png").stat().st_size > 10_000
