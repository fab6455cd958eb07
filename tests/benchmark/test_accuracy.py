"""Error against time: scores against closed forms, and the command end to end."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

from aanet.benchmark import accuracy
from aanet.benchmark.accuracy import AccuracyPoint
from aanet.benchmark.accuracy_chart import draw_accuracy, plot_accuracy
from aanet.cli.main import app
from aanet.data.motorcycle import motorcycle
from aanet.data.sample import StereoSample
from aanet.errors import AanetError, InputError
from aanet.evaluation.origin import MatcherOrigin
from aanet.evaluation.protocols import protocol_of
from aanet.inference.hints import InferenceHints
from aanet.inference.options import MatchOptions, Scale
from aanet.matcher import StereoMatcher
from helpers import layouts
from helpers.fake_engine import Array, FakeEngine


def pairs(*disparities: float) -> accuracy.Pairs:
    """Pairs of constant disparity, 32×64."""
    image = np.random.default_rng(0).integers(0, 255, (32, 64, 3), np.uint8)
    known = np.ones((32, 64), bool)
    samples = [
        StereoSample(f"pair {value}", image, image, np.full((32, 64), value, np.float32), known)
        for value in disparities
    ]
    return accuracy.Pairs("made up", samples, range(len(samples)), protocol_of("folder"))


def origins_of(opened: dict[str, StereoMatcher]) -> dict[str, MatcherOrigin]:
    return {name: MatcherOrigin.of(each, "sgbm", MatchOptions()) for name, each in opened.items()}


def matchers() -> dict[str, StereoMatcher]:
    return {str(value): FakeEngine(value).matcher for value in (5.0, 8.0)}


def test_every_matcher_is_scored_at_every_scale() -> None:
    calls = []
    measured = accuracy.measure_accuracy(
        matchers(), {"1": 1.0, "0.5": 0.5}, pairs(5.0, 6.0), 3, lambda: calls.append(1)
    )
    points = measured.points
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
    assert [[each.size for each in point.done] for point in points[:2]] == [[(32, 64)] * 2, [(16, 32)] * 2]
    assert len(calls) == 4 * (1 + 3 * 2)


def test_the_candidates_take_turns_on_each_pair() -> None:
    calls: list[tuple[str, int]] = []

    def recording(name: str) -> StereoMatcher:
        def predict(left: Array) -> Array:
            calls.append((name, left.shape[3]))
            return np.full_like(left[:, 0], 5)

        return FakeEngine(predict).matcher

    scales: dict[str, Scale] = {"1": 1.0, "0.5": 0.5}
    accuracy.measure_accuracy({name: recording(name) for name in "ab"}, scales, pairs(5.0, 6.0), rounds=3)
    assert calls == [("a", 64), ("a", 32), ("b", 64), ("b", 32)] * (1 + 3 * 2)


def test_the_options_apply_to_all_and_auto_is_not_measured_twice() -> None:
    hints = InferenceHints(upscale_to=80, sharpen_edges=True)
    both = {"plain": FakeEngine().matcher, "hinted": FakeEngine(hints=hints).matcher}
    options = MatchOptions(postprocess="none", tile="none")
    measured = accuracy.measure_accuracy(both, {"1": 1.0, "auto": "auto"}, pairs(5.0), options=options)
    assert [(point.model, point.scale_used) for point in measured.points] == [
        ("plain", "1"),
        ("hinted", "1"),
        ("hinted", "auto (1.25)"),
    ]
    assert not any(each.sharpen_edges for point in measured.points for each in point.done)


def test_what_cannot_match_the_pairs_is_left_out_with_the_reason() -> None:
    def refuse(left: Array) -> Array:
        if left.shape[3] < 64:
            raise InputError("Too small.")
        return np.full_like(left[:, 0], 5)

    picky = {"picky": FakeEngine(refuse).matcher}
    measured = accuracy.measure_accuracy(picky, {"1": 1.0, "0.5": 0.5}, pairs(5.0))
    assert [point.scale for point in measured.points] == ["1"]
    assert measured.failed == {("picky", "0.5"): "Too small."}
    origins = origins_of(picky)
    assert ("picky at scale 0.5 is left out", "Too small.") in accuracy.protocol_lines(
        measured, origins, pairs(5.0), "here"
    )
    assert accuracy.as_dict(measured, origins, pairs(5.0), "here")["left_out"][0]["reason"] == "Too small."
    with pytest.raises(AanetError, match="Too small"):
        accuracy.measure_accuracy(picky, {"0.5": 0.5}, pairs(5.0))


def test_the_front_has_what_none_beats_in_both() -> None:
    points = [
        AccuracyPoint("a", "1", 1.0, 3.0, 9.0, "x"),
        AccuracyPoint("b", "1", 2.0, 3.0, 5.0, "x"),  # slower than a, not better in EPE
        AccuracyPoint("c", "1", 3.0, 1.0, 7.0, "x"),
        AccuracyPoint("d", "1", 4.0, 2.0, 4.0, "x"),
    ]
    assert [p.model for p in accuracy.pareto_front(points)] == ["a", "c"]
    assert [p.model for p in accuracy.pareto_front(points, lambda p: p.bad2)] == ["a", "b", "d"]
    assert [row[5] for row in accuracy.rows(points)] == ["both", "> 2 px", "EPE", "> 2 px"]


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


def crowded() -> list[AccuracyPoint]:
    """Five matchers whose lines cross."""
    return [
        AccuracyPoint(f"matcher_{name}", scale, (0.1 + 0.02 * i) * factor**2, 1 / factor + 0.05 * i, 9.0, "x")
        for i, name in enumerate("abcde")
        for scale, factor in (("0.5", 0.5), ("0.75", 0.75), ("1", 1.0), ("auto", 1.5))
    ]


def test_the_labels_of_the_chart_do_not_overlap() -> None:
    figure = draw_accuracy(crowded(), pairs(5.0), "a machine")
    left = figure.axes[0]
    boxes = [text.get_window_extent() for text in left.texts]
    assert len(boxes) == 5 * (1 + 4)
    overlaps = [(a, b) for a, b in itertools.combinations(boxes, 2) if a.overlaps(b)]
    assert not overlaps
    assert all(left.bbox.x0 <= box.x0 and box.x1 <= left.bbox.x1 for box in boxes)
    assert left.get_xscale() == "log"


def test_the_chart_is_drawn(tmp_path: Path) -> None:
    plot_accuracy(crowded(), pairs(5.0), "a machine", tmp_path / "chart.png")
    picture = cv2.imread(str(tmp_path / "chart.png"))
    assert picture is not None
    assert picture.shape[1] > 1000
    assert picture.std() > 5
    assert (picture[:5, :5] == 255).all()


def test_the_command_writes_table_numbers_and_chart(tmp_path: Path) -> None:
    given = ["benchmark", "sgbm", "--accuracy", "motorcycle", "--scales", "0.25,0.5", "--rounds", "1"]
    result = CliRunner().invoke(app, [*given, "-o", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    measured = json.loads((tmp_path / "report.json").read_text())
    assert json.loads(result.stdout) == measured
    coarse, fine = measured["points"]
    assert coarse["epe"] > fine["epe"] > 0
    assert coarse["scales_used"] == [0.25]
    assert measured["models"]["sgbm"]["versions"].keys() == {"aanet", "opencv"}
    report = (tmp_path / "report.md").read_text()
    assert "| sgbm | 0.25 |" in report
    assert "- sgbm, computed by: OpenCV" in report
    assert "- holes: filled" in report


def test_files_with_names_are_compared_on_a_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[dict[str, object]] = []

    def open_engine(model: str, **options: object) -> FakeEngine:
        opened.append({"model": model, **options})
        return FakeEngine(5.0 if model == "sgbm" else 4.0)

    monkeypatch.setattr("aanet.matcher.open_engine", open_engine)
    (tmp_path / "w.pth").write_bytes(b"weights")
    root = layouts.kitti2015(tmp_path / "kitti")
    given = f"benchmark mine={tmp_path / 'w.pth'} sgbm --accuracy kitti2015={root} --split all --limit 3"
    options = "--scales 1,0.5 --rounds 2 --engine torch --threads 1 --postprocess none --json"
    result = CliRunner().invoke(app, [*given.split(), *options.split(), "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert [(each["model"], each["engine"], each["threads"]) for each in opened] == [
        (str(tmp_path / "w.pth"), "torch", 1),
        ("sgbm", None, 1),
    ]
    assert [(point["model"], point["scale"]) for point in facts["points"]] == [
        ("mine", "1"),
        ("mine", "0.5"),
        ("sgbm", "1"),
        ("sgbm", "0.5"),
    ]
    assert facts["count"] == 3
    assert facts["models"]["mine"]["weights"].startswith("sha256:")
    assert facts["models"]["mine"]["postprocess"] == "none"
    assert "the raw prediction" in (tmp_path / "out/report.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--accuracy motorcycle --split train", "single pair without splits"),
        ("--accuracy motorcycle --scales 90", "The scale must be from"),
        ("--accuracy kitti2015={root} --split test", "no ground truth to measure errors with"),
        ("--postprocess none", "go with --accuracy"),
        ("--preset paper --threads 1", "do not go with"),
        ("--accuracy motorcycle --engine warp", "The engine must be"),
    ],
)
def test_wrong_use_is_one_sentence_before_any_work(arguments: str, sentence: str, tmp_path: Path) -> None:
    root = layouts.kitti2015(tmp_path)
    result = CliRunner().invoke(app, ["benchmark", *arguments.format(root=root).split()])
    assert isinstance(result.exception, AanetError)
    assert sentence in str(result.exception)


def test_the_command_on_the_sample_pair_draws_a_chart(tmp_path: Path) -> None:
    given = ["benchmark", "sgbm", "--accuracy", "motorcycle", "--scales", "0.25", "--rounds", "1"]
    result = CliRunner().invoke(app, [*given, "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "Motorcycle, 1 pair" in result.stdout
    assert (tmp_path / "chart.png").stat().st_size > 10_000
