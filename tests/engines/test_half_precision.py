"""bf16 is the default only where a trial on a real pair was faster and lost next to nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from aanet.data.motorcycle import motorcycle
from aanet.engines import bf16_support
from aanet.engines.bf16_support import Bf16Support
from aanet.engines.openvino import cache, engine, precision
from aanet.engines.openvino.engine import OpenVINOEngine
from aanet.engines.openvino.precision import LARGEST_LOSS, choose_precision, predict_motorcycle
from aanet.engines.torch import TorchEngine
from aanet.errors import UnsupportedError
from aanet.inference.padding import padding_for
from aanet.inference.size_rule import SizeRule
from aanet.inference.spec import Precision
from aanet.models.weights import checkpoint
from helpers.fake_engine import FakeEngine


class Clock:
    """Shows the time that fake engines have said they take."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


CLOCK = Clock()


def wrong_by(pixels: float, memory: int = 10**12, seconds: Iterable[float] = ()) -> FakeEngine:
    """An engine that is wrong by so many pixels on the Motorcycle pair, and takes so long."""
    durations, sizes = iter(seconds), SizeRule(48, 48)

    def predict(left: np.ndarray) -> np.ndarray:
        assert left.shape == (1, 3, 528, 768)
        assert 0 <= left.min() < left.max() <= 1
        CLOCK.now += next(durations, 0.0)
        disparity = np.full((528, 768), 1000, np.float32)
        top, _, start, _ = padding_for(500, 741, sizes)  # where the padding leaves the image
        disparity[top : top + 500, start : start + 741] = motorcycle().disparity + pixels
        return disparity

    return FakeEngine(predict, memory, max_disparity=96, sizes=sizes)


class Opener:
    """Opens engines, and remembers which."""

    def __init__(
        self, loss: float = 0.0, bf16_seconds: Iterable[float] = (9, 1, 1, 1), **options: int
    ) -> None:
        self.opened: list[Precision] = []
        self.loss, self.bf16_seconds, self.options = loss, list(bf16_seconds), options

    def __call__(self, precision: Precision) -> FakeEngine:
        self.opened.append(precision)
        if precision == "bf16":
            return wrong_by(1 + self.loss, seconds=self.bf16_seconds, **self.options)
        return wrong_by(1, seconds=[9, 2, 2, 2], **self.options)


def choose(folder: Path, opener: Opener) -> Precision:
    return choose_precision(folder, opener, CLOCK)


def test_the_error_is_that_of_the_pair_without_its_padding() -> None:
    predict = predict_motorcycle(wrong_by(0.25))
    assert predict is not None
    assert predict() == pytest.approx(0.25, abs=1e-4)
    assert predict_motorcycle(wrong_by(0.25, memory=10**6)) is None


@pytest.mark.parametrize(
    ("loss", "expected"),
    [(-0.5, "bf16"), (0.9 * LARGEST_LOSS, "bf16"), (1.1 * LARGEST_LOSS, "float32"), (np.nan, "float32")],
)
def test_a_small_loss_is_taken_and_measured_once(tmp_path: Path, loss: float, expected: Precision) -> None:
    opener = Opener(loss)
    assert choose(tmp_path, opener) == expected
    assert choose(tmp_path, opener) == expected
    assert opener.opened == ["float32", "bf16"] * (1 if np.isfinite(loss) else 2)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ((9, 1, 1, 1), "bf16"),
        ((99, 1.5, 1.5, 99), "bf16"),  # neither compiling nor one bad moment counts
        ((0, 1.99, 1.99, 1.99), "float32"),  # not clearly faster
        ((0, 3, 3, 1), "float32"),
    ],
)
def test_only_what_is_clearly_faster_is_taken(
    tmp_path: Path, seconds: tuple[float, ...], expected: Precision
) -> None:
    assert choose(tmp_path, Opener(0.5 * LARGEST_LOSS, seconds)) == expected
    kept = json.loads((tmp_path / "bf16.json").read_text())
    assert kept["seconds"] == pytest.approx({"float32": 2, "bf16": sorted(seconds[1:])[1]})
    assert kept["errors"] == pytest.approx({"float32": 1, "bf16": 1 + 0.5 * LARGEST_LOSS}, abs=1e-4)
    assert choose(tmp_path, Opener()) == expected  # by what was kept


@pytest.mark.parametrize("damage", ['{"errors": ', "[]", '{"float32": 1.0, "bf16": 1.0}', "foreign"])
def test_a_damaged_or_foreign_record_is_measured_again(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "bf16.json"
    assert choose(tmp_path, Opener()) == "bf16"
    if damage == "foreign":
        content = json.loads(path.read_text())
        content["machine"]["processor"] = "Another"
        damage = json.dumps(content)
    path.write_text(damage)
    assert choose(tmp_path, Opener(bf16_seconds=[9, 9, 9, 9])) == "float32"
    assert set(json.loads(path.read_text())) == {"machine", "errors", "seconds"}


def test_a_folder_that_cannot_be_written_is_no_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    assert choose(tmp_path / "file" / "folder", Opener()) == "bf16"
    assert "could not be cached" in caplog.text


def test_want_of_memory_is_not_kept(tmp_path: Path) -> None:
    assert choose(tmp_path, Opener(memory=10**6)) == "float32"
    assert choose(tmp_path, Opener()) == "bf16"


@pytest.fixture
def network_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, converted) -> Path:
    """A file of weights; by the guard bf16 works here and is faster, and the trial is the real one."""
    monkeypatch.setenv("AANET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("aanet.engines.openvino.conversion.to_openvino", lambda _: converted.model)
    monkeypatch.setattr(precision, "choose_precision", choose_precision)
    guard_says(monkeypatch, WORKS)
    path = tmp_path / "weights.safetensors"
    checkpoint.save(converted.network, path)
    return path


WORKS = Bf16Support(True, "it works", float32_seconds=2.0, bf16_seconds=1.0)
SLOW = Bf16Support(True, "it is slow", float32_seconds=1.0, bf16_seconds=2.0)
BROKEN = Bf16Support(False, "a short probe ended with SIGILL")


def guard_says(monkeypatch: pytest.MonkeyPatch, support: Bf16Support) -> None:
    monkeypatch.setitem(bf16_support._results, "openvino", support)


@pytest.mark.parametrize(("loss", "expected"), [(0.0, "bf16"), (0.1, "float32")])
def test_weights_run_in_bf16_by_default_if_they_lose_nothing_by_it(
    network_file: Path, monkeypatch: pytest.MonkeyPatch, loss: float, expected: str
) -> None:
    tried = []

    def predict(engine: OpenVINOEngine) -> Callable[[], float]:
        tried.append(engine.description)
        half = "bf16" in engine.description

        def run() -> float:
            CLOCK.now += 1 if half else 2
            return 1 + loss if half else 1

        return run

    monkeypatch.setattr(precision, "predict_motorcycle", predict)
    monkeypatch.setattr(precision.choose_precision, "__defaults__", (CLOCK,))
    assert f", {expected}, cpu" in OpenVINOEngine.from_weights(network_file).description
    assert f", {expected}, cpu" in OpenVINOEngine.from_weights(network_file).description
    assert len(tried) == 2
    key = cache.key_of(network_file, None, f"openvino {engine.openvino.__version__}")
    assert cache.load(key) is not None  # what was measured lies beside it and damages nothing


@pytest.mark.slow
@pytest.mark.usefixtures("openvino_bf16")
def test_the_trial_runs_on_a_real_engine(network_file: Path) -> None:
    assert OpenVINOEngine.from_weights(network_file).spec.max_disparity == 24
    (kept,) = (network_file.parent / "cache").rglob("bf16.json")
    trial = json.loads(kept.read_text())
    assert all(value > 0 for part in ("errors", "seconds") for value in trial[part].values())


@pytest.mark.parametrize("support", [SLOW, BROKEN])
def test_nothing_is_tried_where_the_guard_says_no(
    network_file: Path, monkeypatch: pytest.MonkeyPatch, support: Bf16Support
) -> None:
    monkeypatch.setattr(precision, "predict_motorcycle", lambda _: pytest.fail("tried"))
    guard_says(monkeypatch, support)
    assert ", float32, cpu" in OpenVINOEngine.from_weights(network_file).description
    if support is SLOW:
        assert ", bf16, cpu" in OpenVINOEngine.from_weights(network_file, precision="bf16").description
    else:
        with pytest.raises(UnsupportedError, match="OpenVINO here: a short probe ended with SIGILL"):
            OpenVINOEngine.from_weights(network_file, precision="bf16")


def test_what_is_asked_for_is_not_tried(network_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "predict_motorcycle", lambda _: pytest.fail("tried"))
    assert ", float32, cpu" in OpenVINOEngine.from_weights(network_file, precision="float32").description
    assert ", bf16, cpu" in OpenVINOEngine.from_weights(network_file, precision="bf16").description


def test_a_network_in_memory_and_torch_compute_in_float32(converted, monkeypatch: pytest.MonkeyPatch) -> None:
    guard_says(monkeypatch, WORKS)
    assert ", float32, cpu" in OpenVINOEngine(converted.model, converted.spec).description
    assert ", float32, cpu" in TorchEngine(converted.network, "cpu").description
