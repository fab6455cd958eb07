"""bf16 is the default only where a trial on a real pair has shown that it costs next to nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from aanet.data.motorcycle import motorcycle
from aanet.engines import cache, half_precision, openvino_engine
from aanet.engines.engine import NetworkFacts, Precision
from aanet.engines.half_precision import LARGEST_LOSS, choose_precision, motorcycle_error
from aanet.engines.openvino_engine import OpenVINOEngine
from aanet.engines.torch_engine import TorchEngine
from aanet.models import weights
from aanet.padding import padding_for


class WrongBy:
    """An engine that knows the Motorcycle pair's disparity, and is wrong by so many pixels."""

    name = description = "wrong"

    def __init__(self, pixels: float, memory: int = 10**12) -> None:
        self.facts = NetworkFacts("aanet", 96, size_multiple=48, minimum_size=48)
        self.pixels, self.memory = pixels, memory

    def __call__(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert left.shape == right.shape == (1, 3, 528, 768)
        assert 0 <= left.min() < left.max() <= 1
        disparity = np.full((1, 528, 768), 1000, np.float32)
        top, _, start, _ = padding_for(500, 741, self.facts)  # where the padding leaves the image
        disparity[:, top : top + 500, start : start + 741] = motorcycle().disparity + self.pixels
        return disparity, np.ones_like(disparity)

    def available_memory(self) -> int:
        return self.memory


def test_the_error_is_that_of_the_pair_without_its_padding() -> None:
    assert motorcycle_error(WrongBy(0.25)) == pytest.approx(0.25, abs=1e-4)
    assert motorcycle_error(WrongBy(0.25, memory=10**6)) == np.inf


@pytest.mark.parametrize(
    ("loss", "expected"),
    [(-0.5, "bf16"), (0.9 * LARGEST_LOSS, "bf16"), (1.1 * LARGEST_LOSS, "float32"), (np.nan, "float32")],
)
def test_a_small_loss_is_taken_and_measured_once(tmp_path: Path, loss: float, expected: Precision) -> None:
    opened: list[Precision] = []

    def open_at(precision: Precision) -> WrongBy:
        opened.append(precision)
        return WrongBy(1 + loss if precision == "bf16" else 1)

    assert choose_precision(tmp_path, open_at) == expected
    assert choose_precision(tmp_path, open_at) == expected
    assert opened == ["float32", "bf16"] * (1 if np.isfinite(loss) else 2)


def test_a_damaged_record_is_measured_again_and_a_folder_that_cannot_be_written_is_no_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "bf16.json").write_text('{"float32": ')
    assert choose_precision(tmp_path, lambda _: WrongBy(1)) == "bf16"
    assert set(json.loads((tmp_path / "bf16.json").read_text())) == {"float32", "bf16"}
    (tmp_path / "file").write_text("in the way")
    assert choose_precision(tmp_path / "file" / "folder", lambda _: WrongBy(1)) == "bf16"
    assert "measured again next time" in caplog.text


def test_want_of_memory_is_not_kept(tmp_path: Path) -> None:
    assert choose_precision(tmp_path, lambda _: WrongBy(1, memory=10**6)) == "float32"
    assert choose_precision(tmp_path, lambda _: WrongBy(1)) == "bf16"


@pytest.fixture
def network_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, converted) -> Path:
    """A file of weights; this processor has bf16, the trial is the real one."""
    monkeypatch.setenv("AANET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("aanet.engines.conversion.convert", lambda _: converted.model)
    monkeypatch.setattr(half_precision, "choose_precision", choose_precision)
    monkeypatch.setattr(openvino_engine, "processor_has_bf16", lambda: True)
    path = tmp_path / "weights.safetensors"
    weights.save(converted.network, path)
    return path


@pytest.mark.parametrize(("loss", "expected"), [(0.0, "bf16"), (0.1, "float32")])
def test_weights_run_in_bf16_by_default_if_they_lose_nothing_by_it(
    network_file: Path, monkeypatch: pytest.MonkeyPatch, loss: float, expected: str
) -> None:
    tried = []

    def error_of(engine: OpenVINOEngine) -> float:
        tried.append(engine.description)
        return 1 + loss if "bf16" in engine.description else 1

    monkeypatch.setattr(half_precision, "motorcycle_error", error_of)
    assert f", {expected}, cpu" in OpenVINOEngine.from_weights(network_file).description
    assert f", {expected}, cpu" in OpenVINOEngine.from_weights(network_file).description
    assert len(tried) == 2
    key = cache.key_of(network_file, None, f"openvino {openvino_engine.openvino.__version__}")
    assert cache.load(key) is not None  # what was measured lies beside it and damages nothing


def test_the_trial_runs_on_a_real_engine(network_file: Path) -> None:
    # Where the processor has no bf16, OpenVINO computes in float32 and loses nothing.
    assert ", bf16, cpu" in OpenVINOEngine.from_weights(network_file).description


def test_what_is_asked_for_is_not_tried(network_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(half_precision, "motorcycle_error", lambda _: pytest.fail("tried"))
    assert ", float32, cpu" in OpenVINOEngine.from_weights(network_file, precision="float32").description
    assert ", bf16, cpu" in OpenVINOEngine.from_weights(network_file, precision="bf16").description
    monkeypatch.setattr(openvino_engine, "processor_has_bf16", lambda: False)
    assert ", float32, cpu" in OpenVINOEngine.from_weights(network_file).description


def test_a_network_in_memory_and_torch_compute_in_float32(converted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openvino_engine, "processor_has_bf16", lambda: True)
    assert ", float32, cpu" in OpenVINOEngine(converted.model, converted.facts).description
    assert ", float32, cpu" in TorchEngine(converted.network, "cpu").description
