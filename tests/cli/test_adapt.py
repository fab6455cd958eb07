"""`aanet adapt`: what it writes, prints and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from aanet.cli.main import app
from aanet.errors import AanetError
from aanet.io.images import write_image
from aanet.models.network import StereoNetwork
from aanet.models.weights import checkpoint
from aanet.training import adaptation
from aanet.training.adaptation import Change, Scores
from helpers.matching_network import matching_network, plane
from helpers.small_networks import build_small

QUICK = ("--labels", "sgbm", "--min-confidence", "0.3", "--steps", "2", "--threads", "1")
BETTER = Scores(Change(0.8, 0.9), Change(0.2, 0.1), Change(1.0, 1.05))
WORSE = Scores(Change(0.8, 0.7), Change(0.2, 0.1), Change(1.0, 1.0))


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four pairs of planes in one folder."""
    root = tmp_path_factory.mktemp("pairs")
    for number in range(4):
        for side, image in zip(("left", "right"), plane(96, 160, 4 + number, seed=number), strict=True):
            write_image(root / f"{number}_{side}.png", image)
    return root


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "start.safetensors"
    checkpoint.save(matching_network(24), path)
    return path


def invoke(*words: object) -> Result:
    return CliRunner().invoke(app, ["adapt", *map(str, words)])


@pytest.fixture
def verdict(monkeypatch: pytest.MonkeyPatch) -> Callable[[Scores], StereoNetwork]:
    """Replace the training by a network that has the given scores."""

    def replace(scores: Scores) -> StereoNetwork:
        network = build_small("stereonet_aa", 24, randomize=True)
        monkeypatch.setattr(adaptation, "fine_tune", lambda _recipe, _observe: (network, 2))
        monkeypatch.setattr(adaptation, "summarize", lambda *_: scores)
        return network

    return replace


@pytest.mark.slow
def test_weights_are_trained_scored_and_judged(
    pairs: Path, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adaptation, "PROCEDURAL_SCENES", 1)
    output = tmp_path / "new.safetensors"
    result = invoke(pairs, "-o", output, "--model", weights, *QUICK, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["training_pairs"], report["held_out_pairs"], report["steps"]) == (3, 1, 2)
    assert 0.1 < report["labeled"] <= 1
    assert 0 < report["scores"]["agreement"]["before"] < 1
    assert report["scores"]["agreement"]["before"] != report["scores"]["agreement"]["after"]
    assert report["scores"]["photometric"]["before"] != report["scores"]["photometric"]["after"]
    assert report["kept"] == output.exists() == (report["weights"] is not None) == (not report["reasons"])
    assert [path for path in tmp_path.iterdir() if path != output] == []  # no copies of the pairs are left


def test_better_weights_are_written_with_their_origin(
    pairs: Path, weights: Path, tmp_path: Path, verdict: Callable[[Scores], StereoNetwork]
) -> None:
    network = verdict(BETTER)
    output = tmp_path / "new.safetensors"
    result = invoke(pairs, "-o", output, "--model", weights, *QUICK)
    assert result.exit_code == 0, result.output
    assert "The adapted weights are better" in result.stdout
    assert "80.00 %" in result.stdout
    assert "90.00 %" in result.stdout
    stored = checkpoint.read(output)
    assert stored.facts["start_from"] == "start.safetensors"
    assert stored.facts["adaptation"]["scores"] == BETTER.as_dict()
    for name, value in network.state_dict().items():
        assert (stored.state[name] == value).all()


def test_worse_weights_are_not_written(
    pairs: Path, weights: Path, tmp_path: Path, verdict: Callable[[Scores], StereoNetwork]
) -> None:
    verdict(WORSE)
    output = tmp_path / "new.safetensors"
    output.write_bytes(b"from before")
    result = invoke(pairs, "-o", output, "--model", weights, *QUICK, "--overwrite")
    assert result.exit_code == 0, result.output
    words = " ".join(result.stdout.split())
    assert "not better: left and right do not agree more often. Nothing was written" in words
    assert output.read_bytes() == b"from before"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--minutes", "1", "--steps", "2"], "exclude each other"),
        (["--minutes", "0"], "must be a positive number"),
        (["--minutes", "nan"], "must be a positive number"),
        (["--hold-out", "1"], "between 0 and 1"),
        (["--min-confidence", "2"], "from 0 to 1"),
        (["--max-difference", "0"], "must be positive"),
        (["-o", "weights.pt"], ".safetensors"),
        (["--model", "sgbm"], "nor bundled weights"),
        (["--textures", "nowhere"], "nowhere does not exist"),
    ],
)
def test_a_wrong_option_is_one_sentence(pairs: Path, words: list[str], message: str) -> None:
    result = invoke(pairs, *words)
    assert isinstance(result.exception, AanetError), result.output
    assert message in str(result.exception)


def test_one_pair_is_not_enough(pairs: Path) -> None:
    result = invoke(pairs / "0_left.png", pairs / "0_right.png")
    assert isinstance(result.exception, AanetError)
    assert "at least two are needed" in str(result.exception)


def test_a_live_source_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from aanet.io import pairs as module

    class Camera:
        live = True

    monkeypatch.setattr(module, "find_pairs", lambda *_: module.Pairs(lambda: iter(()), None, video=Camera()))  # type: ignore[arg-type]
    result = invoke("0")
    assert isinstance(result.exception, AanetError)
    assert "live source" in str(result.exception)


def test_a_pair_that_cannot_be_read_is_named_and_nothing_is_left(
    pairs: Path, weights: Path, tmp_path: Path
) -> None:
    for name in ("0_left.png", "0_right.png", "1_left.png", "1_right.png"):
        (tmp_path / name).write_bytes((pairs / name).read_bytes())
    (tmp_path / "1_right.png").write_bytes((pairs / "1_right.png").read_bytes()[:500])
    output = tmp_path / "out" / "new.safetensors"
    result = invoke(tmp_path, "-o", output, "--model", weights, *QUICK)
    assert isinstance(result.exception, AanetError)
    assert "1_right.png is damaged" in str(result.exception)
    assert list(output.parent.iterdir()) == []


def test_an_existing_file_is_refused_before_any_work(pairs: Path, tmp_path: Path) -> None:
    output = tmp_path / "new.safetensors"
    output.write_bytes(b"")
    result = invoke(pairs, "-o", output)
    assert isinstance(result.exception, AanetError)
    assert "already exists" in str(result.exception)
