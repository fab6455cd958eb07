"""A full or read-only disk and limits of the system are one sentence and cost nothing that was there."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import pytest
from openvino import opset13
from typer.testing import CliRunner

from aanet.cli.main import app
from aanet.data.datasets import open_dataset
from aanet.engines.openvino.engine import OpenVINOEngine
from aanet.errors import AanetError, WriteError
from aanet.evaluation.submission import write_submission
from aanet.inference.spec import NetworkSpec
from aanet.io.atomic import write_bytes
from aanet.io.images import write_image
from helpers import layouts
from helpers.crash_scenarios import put_pairs, put_training_data
from helpers.fake_engine import FakeEngine
from helpers.small_disk import SmallDisk

SGBM = ("--model", "sgbm", "--max-disparity", "16", "--save", "disparity.npy,color")


def run(*words: object) -> str:
    """Run a command in this process; what main() turns into a sentence is raised."""
    result = CliRunner().invoke(app, [*map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def files(folder: Path) -> dict[str, bytes]:
    """All files, including temporary ones."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_predictions_go_on_when_a_full_disk_has_space_again(tmp_path: Path, disk: SmallDisk) -> None:
    put_pairs(tmp_path)
    pair = (tmp_path / "left", tmp_path / "right")
    run("predict", *pair, "-o", tmp_path / "whole", *SGBM)
    whole = files(tmp_path / "whole")
    assert sum(len(content) for name, content in whole.items() if name.startswith("0_")) < 16_000
    filler = disk.leave_free(16)
    with pytest.raises(WriteError, match="no space left on device"):
        run("predict", *pair, "-o", disk.folder / "out", *SGBM)
    left = files(disk.folder / "out")
    assert left == {name: content for name, content in whole.items() if name.startswith("0_")}
    filler.unlink()
    run("predict", *pair, "-o", disk.folder / "out", *SGBM, "--resume")
    assert files(disk.folder / "out") == whole


def test_older_predictions_survive_a_full_disk(tmp_path: Path, disk: SmallDisk) -> None:
    put_pairs(tmp_path)
    words = ("predict", tmp_path / "left", tmp_path / "right", "-o", disk.folder / "out", *SGBM)
    run(*words)
    before = files(disk.folder / "out")
    disk.leave_free(4)
    with pytest.raises(WriteError, match="no space left on device"):
        run(*words, "--overwrite")
    assert files(disk.folder / "out") == before


def test_a_submission_is_whole_or_absent(tmp_path: Path, disk: SmallDisk) -> None:
    dataset = open_dataset("kitti2015", layouts.kitti2015(tmp_path / "data"), "test")
    matcher: Any = FakeEngine(lambda left: np.random.default_rng(0).random(left[:, 0].shape) * 40).matcher
    filler = disk.leave_free(4)
    with pytest.raises(WriteError, match=r"submission\.zip: no space left on device"):
        write_submission(matcher, [dataset] * 20, disk.folder / "submission.zip", "AANet")
    assert files(disk.folder).keys() == {"filler"}
    filler.unlink()
    write_submission(matcher, [dataset], disk.folder / "submission.zip", "AANet")
    assert zipfile.ZipFile(disk.folder / "submission.zip").testzip() is None


def large_model(path: Path, max_disparity: int | None) -> tuple[openvino.Model, NetworkSpec]:  # noqa: ARG001
    """Two images in, their sums with a constant of 1 MB out; in place of a conversion."""
    images = [opset13.parameter([-1, 3, -1, -1], openvino.Type.f32) for _ in range(2)]
    constant = opset13.constant(np.random.default_rng(0).random((500, 500), np.float32))
    sums = [
        opset13.reduce_sum(opset13.add(image, opset13.reduce_sum(constant, [0, 1])), [1]) for image in images
    ]
    return openvino.Model(sums, images, "large"), NetworkSpec("aanet", 48, 500, True)


def test_a_cache_without_space_costs_nothing_but_time(
    tmp_path: Path, disk: SmallDisk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AANET_CACHE", str(disk.folder))
    monkeypatch.setattr("aanet.engines.openvino.engine._convert", large_model)
    weights, image = tmp_path / "w.safetensors", np.ones((1, 3, 8, 8), np.float32)
    weights.write_bytes(b"weights")
    filler = disk.leave_free(100)
    with caplog.at_level(logging.WARNING):
        without = OpenVINOEngine.from_weights(weights, precision="float32")(image, image)[0]
    assert "The converted network is not kept in" in caplog.text
    assert files(disk.folder).keys() == {"filler"}
    filler.unlink()
    for _ in range(2):
        again = OpenVINOEngine.from_weights(weights, precision="float32")(image, image)[0]
        np.testing.assert_array_equal(again, without)
    assert {Path(name).name for name in files(disk.folder)} == {"model.xml", "model.bin", "spec.json"}
    disk.make_read_only()
    caplog.clear()
    again = OpenVINOEngine.from_weights(weights, precision="float32")(image, image)[0]
    np.testing.assert_array_equal(again, without)
    assert not caplog.text  # a cache of another user may be read


def test_a_read_only_folder_is_one_sentence(tmp_path: Path, disk: SmallDisk) -> None:
    put_pairs(tmp_path)
    write_bytes(disk.folder / "kept", b"content")
    disk.make_read_only()
    for words in (
        ("predict", tmp_path / "left", tmp_path / "right", *SGBM, "-o", disk.folder),
        ("data", "synthesize", "-n", 1, "--height", 32, "--width", 48, "-o", disk.folder),
    ):
        with pytest.raises((AanetError, OSError), match=r"(?i)read-only file system"):
            run(*words)
    assert files(disk.folder) == {"kept": b"content"}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".xml", ".onnx", ".pt2"])
def test_an_export_to_a_full_disk_keeps_the_older_one(suffix: str, disk: SmallDisk) -> None:
    from aanet.export.exporting import export_network
    from helpers.small_networks import build_small, thin_out

    network = build_small("stereonet_aa", 24, randomize=True)
    thin_out(network)
    path = disk.folder / f"model{suffix}"
    older = dict.fromkeys((path.name, *(["model.bin"] if suffix == ".xml" else [])), b"older")
    for name, content in older.items():
        (disk.folder / name).write_bytes(content)
    filler = disk.leave_free(50)
    with pytest.raises(WriteError, match=f"Cannot write .*model{suffix}: .*(no space left|may be full)"):
        export_network(network, path, weights="random", size=(16, 24))
    filler.unlink()
    assert files(disk.folder) == older
    export_network(network, path, weights="random", size=(16, 24))
    assert files(disk.folder).keys() == older.keys()
    disk.make_read_only()
    with pytest.raises(WriteError, match="read-only file system"):
        export_network(network, path, weights="random", size=(16, 24))


COMMAND = [sys.executable, "-m", "aanet"]


@pytest.mark.slow
@pytest.mark.extended
def test_training_goes_on_when_a_full_disk_has_space_again(tmp_path: Path, disk: SmallDisk) -> None:
    """In a process of its own: TensorBoard writes from a thread, whose errors it prints."""
    start = tmp_path / "start"
    put_training_data(start)
    (tmp_path / "work").symlink_to(start)  # where the recipe looks for its data
    words = [*COMMAND, "train", str(start / "recipe.toml"), "-o", str(disk.folder / "run")]
    disk.leave_free(1200)
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2, done.stderr
    assert "no space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((disk.folder / "run/checkpoints").iterdir())
    disk.resize(100_000)
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (disk.folder / "run/weights.safetensors").is_file()


LIMITED = """
import os, resource, sys
from aanet.cli.main import main
import aanet.matcher, aanet.viz, aanet.engines.classical
kind, amount = sys.argv[1], int(sys.argv[2])
if kind == "RLIMIT_AS":
    amount += int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(getattr(resource, kind), (amount, amount))
sys.argv = ["aanet", *sys.argv[3:]]
main()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
@pytest.mark.parametrize(
    ("kind", "amount", "words"),
    [("RLIMIT_FSIZE", 2000, "file too large"), ("RLIMIT_AS", 150_000_000, "not enough free memory")],
)
def test_limits_of_the_system_are_one_sentence(kind: str, amount: int, words: str, tmp_path: Path) -> None:
    scene = np.tile(np.random.default_rng(0).integers(0, 256, (20, 752, 3), np.uint8), (100, 4, 1))
    write_image(tmp_path / "left.png", scene[:, :-4])
    write_image(tmp_path / "right.png", scene[:, 4:])
    command = ["predict", str(tmp_path / "left.png"), str(tmp_path / "right.png"), *SGBM]
    command += ["-o", str(tmp_path / "out")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, kind, str(amount), *command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not files(tmp_path / "out")
    write_image(tmp_path / "left.png", scene[:50, :60])
    write_image(tmp_path / "right.png", scene[:50, 4:64])
    run(*command)
    assert len(files(tmp_path / "out")) == 2
