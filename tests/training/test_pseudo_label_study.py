"""The study of pseudo ground truth: what a scanner sees, what the variants differ in, and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from aanet.cli.main import app
from aanet.data.datasets import Folder
from aanet.data.sample import StereoSample
from aanet.evaluation.metrics import error_sums
from aanet.io.images import read_image
from aanet.models.weights import checkpoint, files
from aanet.training import pseudo_label_study as study
from aanet.training.pseudo_label_study import StreetResult, StudySize
from helpers.fake_engine import FakeEngine
from helpers.matching_network import matching_network


def test_a_scanner_sees_lines_of_the_lower_image_up_to_a_distance() -> None:
    disparity = np.full((100, 1242), 40, np.float32)
    disparity[:, 600:] = 4.9
    seen = study.scanner_points(disparity)
    assert not seen[:40].any()
    assert not seen[:, 600:].any()  # too far
    assert np.flatnonzero(seen.any(axis=1)).tolist() == list(range(40, 100, 3))
    assert np.flatnonzero(seen.any(axis=0)).tolist() == list(range(0, 600, 2))


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streets at a ninth of the size."""
    monkeypatch.setattr(study, "SIZE", (64, 160))
    monkeypatch.setattr(study, "CROP", (48, 96))


@pytest.mark.usefixtures("_small")
def test_the_sky_of_every_street_is_without_truth() -> None:
    world = study.streets(StudySize(pairs=4))
    skies = 0.0
    for index in range(len(world)):
        sample = world[index]
        assert sample.disparity is not None
        regions = study.regions_of(sample.disparity)
        assert (np.sum(list(regions.values()), axis=0) == 1).all()
        assert (sample.disparity > 0).all()  # of the sky, too
        assert not (study.scanner_points(sample.disparity) & (regions["sky"] | regions["upper"])).any()
        skies += regions["sky"].mean()
    assert skies > 0.1  # some of the streets have one


@pytest.mark.usefixtures("_small")
def test_training_and_held_out_streets_differ() -> None:
    first, second = (study.streets(StudySize(pairs=1, test_pairs=1), test)[0] for test in (False, True))
    assert (first.left != second.left).any()


@pytest.mark.usefixtures("_small")
def test_pairs_have_the_truth_of_the_scanner_and_labels_elsewhere(tmp_path: Path) -> None:
    world = study.streets(StudySize(pairs=2))
    qualities = list(study.write_pairs(world, FakeEngine(7.0).matcher, tmp_path))
    pairs = Folder(tmp_path, pseudo_labels=True)
    assert len(pairs) == len(qualities) == 2
    for index, quality in enumerate(qualities):
        sample, complete = pairs[index], world[index].disparity
        assert complete is not None
        assert sample.disparity is not None
        assert sample.pseudo_disparity is not None
        seen = study.scanner_points(complete)
        np.testing.assert_allclose(sample.disparity, np.where(seen, complete, 0), rtol=1e-6)
        assert (sample.pseudo_disparity[:, 7:] == 7).all()
        used = (sample.pseudo_disparity > 0) & ~seen
        wrong = np.abs(complete - 7) > 3
        assert quality.known == pytest.approx(100 * seen.mean())
        assert quality.labeled == pytest.approx(100 * used.mean())
        assert quality.bad3 == pytest.approx(100 * wrong[used].mean())
    mean = study.mean_quality(qualities)
    assert mean.known == pytest.approx(np.mean([each.known for each in qualities]))


def test_the_variants_differ_in_nothing_but_the_labels(tmp_path: Path) -> None:
    weights = files.find("aanet_fast")
    without, with_ = (
        study.study_recipe(checkpoint.read(weights), weights, tmp_path, StudySize(), pseudo_labels)
        for pseudo_labels in (False, True)
    )
    assert with_ != without
    data = tuple(replace(each, pseudo_labels=False) for each in with_.data)
    stages = tuple(replace(each, name=without.stage[0].name) for each in with_.stage)
    assert replace(with_, data=data, stage=stages) == without


def result_of(error_without: float) -> StreetResult:
    truth = np.full((10, 20), 0.1, np.float32)
    sample = StereoSample("street", np.zeros((10, 20, 3), np.uint8), np.zeros((10, 20, 3), np.uint8), truth)
    maps = {"before": truth, "without": truth + error_without, "with": truth}
    masks = study.regions_of(truth)
    errors = {
        name: {region: error_sums(one, truth, mask, mask) for region, mask in masks.items()}
        for name, one in maps.items()
    }
    return StreetResult(sample, maps, errors)


def test_the_figure_shows_the_median_and_not_the_best() -> None:
    results = [result_of(error) for error in (9.0, 1.0, 5.0, 0.0, 2.0)]
    chosen = [float(each.errors["without"]["sky"].epe) for each in study.typical(results, 3)]
    assert chosen == pytest.approx([1.0, 2.0, 5.0])
    summary = study.summarize(results)
    assert summary["without"]["sky"]["epe"] == pytest.approx(17 / 5)
    assert summary["without"]["sky"]["bad3"] == pytest.approx(40)
    assert summary["with"]["sky"]["epe"] == 0
    assert np.isnan(summary["with"]["lower"]["epe"])  # only sky in these


@pytest.mark.slow
@pytest.mark.usefixtures("_small")
def test_the_command_trains_both_and_draws_the_figure(tmp_path: Path) -> None:
    weights, output = tmp_path / "start.safetensors", tmp_path / "figure.png"
    checkpoint.save(matching_network(48), weights)
    words = ["--labels", "sgbm", "--pairs", "1", "--steps", "1", "--test-pairs", "1", "--threads", "1"]
    result = CliRunner().invoke(
        app, ["study", "pseudo-labels", "-o", str(output), "--model", str(weights), *words, "--json"]
    )
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert list(report["errors"]) == ["before", "without", "with"]
    errors = [report["errors"][variant]["lower"]["epe"] for variant in report["errors"]]
    assert len(set(errors)) == 3  # three different networks
    assert read_image(output).shape[1] > 4 * 160
    assert {path.name for path in tmp_path.iterdir()} == {"start.safetensors", "figure.png"}
