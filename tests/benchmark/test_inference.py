from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import cv2
import pytest
from typer.testing import CliRunner

from aanet.benchmark import memory
from aanet.benchmark.inference import Conditions, Measurement, speedup
from aanet.benchmark.memory import peak_memory
from aanet.benchmark.models import BenchmarkModel, find_models
from aanet.benchmark.report import aggregation_speedups, markdown, plot, rows
from aanet.cli.main import app
from aanet.errors import AanetError
from aanet.evaluation.timing import Timing
from aanet.inference.size_rule import SizeRule
from aanet.models import zoo
from aanet.models.complexity import Complexity
from aanet.models.weights import checkpoint
from helpers.fake_engine import FakeEngine

COST = Complexity(1, 2, 3, 4, 5, 6)
RUN = Conditions((288, 480), 3, 2, "a processor", {"torch": "2"})


def measured(network: str, engine: str, seconds: float) -> Measurement:
    model = BenchmarkModel(network, network, network)
    return Measurement(model, engine, Timing((seconds,)), 2**30, COST)


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
    missing = Measurement(BenchmarkModel("ganet", "ganet", "ganet"), "openvino", None, None, COST)
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


@pytest.mark.slow
def test_memory_grows_with_the_image() -> None:
    small, large = peak_memory("stereonet_aa", (64, 96), 48), peak_memory("stereonet_aa", (512, 768), 48)
    assert large > small + 20e6


def test_memory_on_windows_is_what_psutil_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_STATUS", Path("no such file"))
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "resource", None)  # importing it would fail
    process = SimpleNamespace(memory_info=lambda: SimpleNamespace(peak_wset=123))
    monkeypatch.setattr(memory.psutil, "Process", lambda: process)
    assert memory.peak_of_this_process() == 123


@pytest.mark.slow
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


def test_own_weights_and_sgbm_are_measured_beside_a_network(tmp_path: Path) -> None:
    checkpoint.save(zoo.build("stereonet_aa", 48), tmp_path / "weights.safetensors")
    models = ["stereonet_aa", f"mine={tmp_path / 'weights.safetensors'}", "sgbm"]
    options = "--engines baseline,torch --height 64 --width 96 --rounds 1 --no-memory --json"
    result = CliRunner().invoke(app, ["benchmark", *models, *options.split()])
    assert result.exit_code == 0, result.output
    measurements = json.loads(result.stdout)["measurements"]
    assert [(row["name"], row["engine"]) for row in measurements] == [
        ("stereonet_aa", "baseline"),
        ("stereonet_aa", "torch"),
        ("mine", "baseline"),
        ("mine", "torch"),
        ("sgbm", "opencv"),
    ]
    assert all(row["median_s"] > 0 for row in measurements)
    assert measurements[2]["network"] == "stereonet_aa"
    assert measurements[2]["paper"]["method"] == "StereoNet-AA"
    assert measurements[2]["paper_macs"] < measurements[0]["paper_macs"]  # it searches 48 pixels


def test_network_files_run_on_their_own_engine_beside_networks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[dict[str, object]] = []

    def open_engine(model: str, **options: object) -> FakeEngine:
        opened.append({"model": model, **options})
        return FakeEngine(name="theirs" if model.endswith(".pb") else model, sizes=SizeRule(32))

    for place in ("aanet.benchmark.models.open_engine", "aanet.benchmark.inference.open_engine"):
        monkeypatch.setattr(place, open_engine)
    (tmp_path / "net.pb").write_bytes(b"a network")
    given = f"benchmark stereonet_aa file={tmp_path / 'net.pb'} sgbm --network-spec theirs.toml --threads 3"
    options = "--max-disparity 96 --engine torch --height 64 --width 96 --rounds 1 --no-memory --json"
    result = CliRunner().invoke(app, [*given.split(), *options.split()])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    rows = {row["name"]: row for row in facts["measurements"]}
    assert [(row["name"], row["engine"]) for row in facts["measurements"]] == [
        ("stereonet_aa", "torch"),
        ("file", "fake"),
        ("sgbm", "opencv"),
    ]
    assert rows["stereonet_aa"]["weights"] == "random"
    assert rows["file"]["weights"] == f"sha256:{sha256(b'a network').hexdigest()}"
    assert (rows["file"]["network"], rows["file"]["median_s"] > 0) == ("theirs", True)
    timed = {str(each["model"]).rsplit("/", 1)[-1]: each for each in opened}
    assert (timed["stereonet_aa"]["max_disparity"], timed["stereonet_aa"]["threads"]) == (96, 3)
    assert (timed["net.pb"]["network_spec"], timed["net.pb"]["max_disparity"]) == ("theirs.toml", None)
    assert (timed["sgbm"]["network_spec"], timed["sgbm"]["max_disparity"]) == (None, 96)
    assert "3 threads" in facts["conditions"]


def test_a_size_that_a_network_file_does_not_take_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aanet.benchmark.models.open_engine", lambda *_, **__: FakeEngine(sizes=SizeRule(64)))
    (tmp_path / "net.pb").write_bytes(b"a network")
    result = CliRunner().invoke(app, ["benchmark", str(tmp_path / "net.pb"), "--height", "100"])
    assert isinstance(result.exception, AanetError)
    assert "multiples of 64" in str(result.exception)


@pytest.mark.slow
def test_the_memory_of_sgbm_is_that_of_opencv() -> None:
    (model,) = find_models(["sgbm"])
    assert peak_memory(**model.arguments, size=(480, 640), engine=None) > 480 * 640


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["no_such_net"], "There is no network 'no_such_net'"),
        (["sgmb"], "did you mean 'sgbm'"),
        (["no/such/file.safetensors"], "neither a file no/such/file.safetensors"),
        (["--engines", "warp"], "There is no engine 'warp' to measure"),
        (["--preset", "mine"], "The presets are 'paper' and 'scaling'"),
        (["aanet", "--height", "50"], "multiples of 12"),
    ],
)
def test_wrong_arguments_are_named(arguments: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app, ["benchmark", *arguments])
    assert isinstance(result.exception, AanetError)
    assert sentence in str(result.exception)
