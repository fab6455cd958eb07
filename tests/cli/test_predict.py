"""`aanet predict` as a user sees it, mostly through the installed command."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import aanet.io.atomic
from aanet.cli.console import sentence
from aanet.cli.main import app
from aanet.errors import AanetError, UnsupportedError
from aanet.geometry.camera import StereoCamera
from aanet.io.depth import read_depth
from aanet.io.disparity import read_disparity
from aanet.io.images import write_image
from aanet.models.weights import checkpoint
from helpers.calibrations import RAW, put_opencv_sample, stereo_entries, storage
from helpers.matching_network import matching_network, plane

COMMAND = [sys.executable, "-c", "from aanet.cli.main import main; main()"]
# Stands in front of the command: any attempt to reach a network raises.
NO_SOCKETS = (
    "import socket, sys\n"
    "def refuse(*_): raise OSError('a socket was opened')\n"
    "socket.socket.connect = socket.socket.connect_ex = socket.create_connection = refuse\n"
    "socket.getaddrinfo = refuse\n"
    "sys.addaudithook(lambda event, _: refuse() if event == 'socket.connect' else None)\n"
    "from aanet.cli.main import main; main()"
)


def run(*arguments: object, command: list[str] = COMMAND) -> subprocess.CompletedProcess[str]:
    words = [*command, "predict", *(str(argument) for argument in arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def inside(*arguments: object) -> Result:
    """The command in this process, which is faster; what main() turns into a sentence is raised here."""
    result = CliRunner().invoke(app, ["predict", *(str(argument) for argument in arguments)])
    if isinstance(result.exception, AanetError):
        raise result.exception
    return result


@pytest.fixture
def pair(tmp_path) -> tuple[Path, Path]:
    return put_pair(tmp_path, "l.png", "r.png")


def put_pair(root: Path, left: str, right: str, disparity: int = 12, seed: int = 0) -> tuple[Path, Path]:
    for name, image in zip((left, right), plane(64, 128, disparity, seed), strict=True):
        write_image(root / name, image)
    return root / left, root / right


def put_folders(root: Path, count: int) -> None:
    for index in range(count):
        put_pair(root, f"left/{index}.png", f"right/{index}.png", disparity=8 + index, seed=index)


def test_one_pair_from_files_to_files(pair, tmp_path):
    done = run(*pair, "--model", "sgbm", "-o", tmp_path / "out", "--max-disparity", 32)
    assert done.returncode == 0, done.stderr
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["l_color.png", "l_disparity.png"]
    disparity = read_disparity(tmp_path / "out" / "l_disparity.png")
    assert np.median(disparity[:, 16:]) == 12
    assert done.stdout.startswith(f"{tmp_path / 'out'}: 1 matched")
    assert done.stderr.strip() == ""


@pytest.mark.slow
def test_a_network_with_its_weights_and_no_connection(pair, tmp_path, monkeypatch):
    monkeypatch.setenv("AANET_CACHE", str(tmp_path / "cache"))
    network = matching_network(24)
    checkpoint.save(network, tmp_path / "w.safetensors")
    options = ["--engine", "openvino", "--save", "disparity.npy", "--json", "-o", tmp_path / "out"]
    command = [sys.executable, "-c", NO_SOCKETS]
    done = run(*pair, "--model", tmp_path / "w.safetensors", *options, command=command)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["model"] == "stereonet_aa"
    assert facts["engine"].startswith("OpenVINO")
    (one,) = facts["pairs"]
    assert np.median(np.load(one["files"][0])[:, 24:]) == pytest.approx(12, abs=0.5)
    assert (tmp_path / "cache" / "openvino").is_dir()


def test_a_network_without_weights_asks_for_them(pair, tmp_path, monkeypatch):
    monkeypatch.setattr("aanet.models.weights.files.BUNDLED", tmp_path)
    with pytest.raises(
        UnsupportedError,
        match=r"weights for AANet-Fast \(aanet_fast\); use a weight file, .* sgbm or cross-scale",
    ):
        inside(*pair, "-o", tmp_path / "out")


def test_times_are_those_of_matching_and_of_everything(pair, tmp_path):
    out = tmp_path / "out"
    facts = json.loads(inside(*pair, "--model", "sgbm", "-o", out, "--save", "panel", "--json").stdout)
    (one,) = facts["pairs"]
    assert 0 < one["matching_seconds"] < one["wall_seconds"] <= facts["wall_seconds"]
    assert "s each, " in inside(*pair, "--model", "sgbm", "-o", out).stdout


def test_what_was_done_to_the_images_is_in_the_json(pair, tmp_path):
    options = ("--model", "sgbm", "--scale", 0.5, "--postprocess", "all", "--json")
    facts = json.loads(inside(*pair, *options, "-o", tmp_path / "out").stdout)
    done = facts["pairs"][0]["processing"]
    assert (done["scale"], done["tile"], done["sharpen_edges"]) == (0.5, None, True)


def test_a_gray_pair_passes_strict_without_a_word(tmp_path):
    for side, image in zip(("l.png", "r.png"), plane(64, 128, 12), strict=True):
        write_image(tmp_path / side, image[..., 0])
    done = inside(
        tmp_path / "l.png", tmp_path / "r.png", "--model", "sgbm", "-o", tmp_path / "out", "--strict"
    )
    assert done.exit_code == 0
    assert done.stderr == ""


def test_a_side_by_side_image_is_a_pair(tmp_path):
    write_image(tmp_path / "both.png", np.hstack(plane(64, 128, 12)))
    out, options = tmp_path / "out", ["--model", "sgbm", "--max-disparity", 32, "--save", "disparity"]
    assert inside(tmp_path / "both.png", *options, "-o", out).exit_code == 0
    assert np.median(read_disparity(out / "both_disparity.png")[:, 16:]) == 12


def test_an_unknown_model_is_answered_with_what_there_is(pair, tmp_path):
    with pytest.raises(
        AanetError, match=r"'aanett' \(did you mean 'aanet'\?\).* a weight file, .* sgbm or cross-scale"
    ):
        inside(*pair, "--model", "aanett", "-o", tmp_path / "out")


def test_meters_come_with_a_calibration(pair, tmp_path):
    camera = StereoCamera(fx=100, cx=64, cy=32, baseline_m=0.12, width=128, height=64)
    camera.save(tmp_path / "camera.json")
    result = inside(
        *(*pair, "--model", "sgbm", "-o", tmp_path / "out", "--max-disparity", 32),
        *("--calib", tmp_path / "camera.json", "--save", "depth,ply,depth_color,occlusion,panel", "--check"),
    )
    assert result.exit_code == 0
    names = ["l_depth.png", "l_depth_color.png", "l_occlusion.png", "l_panel.png", "l_points.ply"]
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == names
    depth = read_depth(tmp_path / "out" / "l_depth.png")
    assert np.nanmedian(depth) == pytest.approx(100 * 0.12 / 12, abs=1e-3)


def test_many_pairs_with_a_bad_one(tmp_path):
    put_folders(tmp_path, 4)
    (tmp_path / "right" / "1.png").write_text("this is text")
    (tmp_path / "right" / "2.png").write_bytes((tmp_path / "right" / "2.png").read_bytes()[:900])
    write_image(tmp_path / "left" / "5.png", plane(8, 8, 1)[0])
    done = run(tmp_path, "--model", "sgbm", "-o", tmp_path / "out", "--save", "disparity")
    assert done.returncode == 2
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "0_disparity.png",
        "3_disparity.png",
    ]
    assert "2 matched, 3 failed" in done.stdout
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 3
    assert "5.png has no partner" in lines[0]
    assert "1 is skipped" in lines[1]
    assert "its content is text" in lines[1]
    assert "2 is skipped" in lines[2]
    assert "is damaged" in lines[2]


def test_resume_does_what_is_missing(tmp_path):
    put_folders(tmp_path, 3)
    out, options = tmp_path / "out", ["--model", "sgbm", "--save", "disparity", "--resume", "--json"]
    assert inside(tmp_path, *options, "-o", out).exit_code == 0
    (out / "1_disparity.png").unlink()
    kept = (out / "0_disparity.png").stat().st_mtime_ns
    facts = json.loads(inside(tmp_path, *options, "-o", out).stdout)
    assert [pair["skipped"] for pair in facts["pairs"]] == [True, False, True]
    assert (out / "1_disparity.png").is_file()
    assert (out / "0_disparity.png").stat().st_mtime_ns == kept


def test_json_lines_come_while_running_and_the_summary_goes_elsewhere(tmp_path):
    put_folders(tmp_path, 4)
    (tmp_path / "right" / "1.png").write_text("this is text")
    done = inside(tmp_path, "--model", "sgbm", "-o", tmp_path / "out", "--save", "disparity", "--jsonl", "-")
    assert done.exit_code == 2
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["name"] for line in lines] == ["0", "1", "2", "3"]
    assert [line["error"] is None for line in lines] == [True, False, True, True]
    assert [lines[0][key] for key in ("width", "height")] == [128, 64]
    assert 0 < lines[0]["mean_confidence"] <= 1
    assert lines[0]["written_bytes"] == (tmp_path / "out/0_disparity.png").stat().st_size
    assert "3 matched, 1 failed" in done.stderr


def test_json_lines_of_a_killed_run_are_continued(tmp_path):
    put_folders(tmp_path, 3)
    out, log = tmp_path / "out", tmp_path / "logs" / "lines.jsonl"
    words = [tmp_path, "--model", "sgbm", "-o", out, "--save", "disparity", "--jsonl", log]
    assert inside(*words, "--frames", 2).exit_code == 0
    with pytest.raises(AanetError, match=r"lines.jsonl already exists; choose another output"):
        inside(*words)
    log.write_text(log.read_text()[:-5])  # the second line is torn
    assert inside(*words, "--resume").exit_code == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["name"], line["skipped"]) for line in lines] == [
        ("0", False),
        *(("0", True), ("1", True), ("2", False)),
    ]
    with pytest.raises(AanetError, match="both write to stdout"):
        inside(*words[:-1], "-", "--json")


def test_shards_are_disjoint_and_complete(tmp_path):
    put_folders(tmp_path, 7)
    write_image(tmp_path / "left" / "alone.png", plane(8, 8, 1)[0])
    words = [tmp_path, "--model", "sgbm", "-o", tmp_path / "out", "--save", "disparity"]
    codes, names = [], []
    for number in (1, 2, 3):  # a file that two shards write is refused
        done = inside(*words, "--shard", f"{number}/3", "--jsonl", "-")
        codes.append(done.exit_code)
        names.append([json.loads(line)["name"] for line in done.stdout.splitlines()])
    assert names == [["0", "3", "6"], ["1", "4"], ["2", "5"]]
    assert codes == [2, 0, 0]  # one of them reports the file without a partner
    assert inside(*words, "--shard", "9/9").exit_code == 0  # of seven pairs, the ninth part has none
    for wrong in ("0/3", "4/3", "3", "a/b", "-1/3", "1/0"):
        with pytest.raises(AanetError, match="A shard is given as I/N"):
            inside(*words, "--shard", wrong)


def test_warnings_are_told_and_strict_refuses(tmp_path):
    left, right = put_pair(tmp_path, "l.png", "r.png")
    told = run(left, left, "--model", "sgbm", "-o", tmp_path / "out")
    assert told.returncode == 0
    assert "l: Both images are the same" in told.stderr
    refused = run(left, left, "--model", "sgbm", "-o", tmp_path / "strict", "--strict")
    assert refused.returncode == 2
    assert refused.stderr.startswith("aanet: Both images are the same")
    assert not (tmp_path / "strict").exists()
    assert run(left, right, "--model", "sgbm", "-o", tmp_path / "strict", "--strict").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["l.png", "missing.png"], "missing.png does not exist; expected an image"),
        (["l.png", "text.png"], "text.png is not a supported image"),
        (["l.png", "cut.png"], "cut.png is damaged"),
        (["l.png", "small.png"], "128 × 64 pixels, the right one 8 × 8; a rectified pair has one size"),
        (["empty"], "has no pairs"),
        (["l.png", "r.png", "--save", "depth"], "Saving depth needs a calibration; give --calib FILE"),
        (["l.png", "r.png", "--save", "occlusion"], "needs the left-right check; give --check"),
        (["l.png", "r.png", "--save", "video"], "no output 'video'"),
        (["l.png", "r.png", "--save", ","], "nothing to save"),
        (["l.png", "r.png", "--tile", "big"], "The tile must be auto, none, or HEIGHTxWIDTH"),
        (["l.png", "r.png", "--tile", "32x300"], "A tile for sgbm with 192 disparities must have at least"),
        (["l.png", "r.png", "--scale", "0"], "The scale must be from 0.05"),
        (["l.png", "r.png", "--max-disparity", "0"], "max_disparity must be a whole number from 1"),
        (["l.png", "r.png", "--engine", "torch"], "sgbm runs in OpenCV"),
        (["l.png", "r.png", "--unit", "mm"], "need a calibration: give --calib FILE"),
        (["l.png", "r.png", "--rectified"], "need a calibration: give --calib FILE"),
        (["l.png", "r.png", "--calib", "small.json"], "for images of 8×8 pixels; these have 128×64"),
        (
            ["l.png", "r.png", "--calib", "small.json", "--unit", "mm"],
            "small.json has a unit of length that its format fixes",
        ),
        (["l.png", "r.png", "--calib", "large.json"], "and not cropped, give --resized."),
        (
            ["l.png", "r.png", "--calib", "mm.yml"],
            "0.1101 m in mm, 1.101 m in cm, 110.1 m in m; give the unit, --un",
        ),
        (["l.png", "r.png", "--calib", "mm.yml", "--unit", "inch"], "is mm, cm or m; got 'inch'"),
        (
            ["l.png", "r.png", "--calib", "extrinsics.yml"],
            "give --rectified in the first case, and the file of",
        ),
        (
            ["l.png", "r.png", "--calib", "intrinsics.yml"],
            "if they are in a second file, give it too, --calib-right",
        ),
        (["l.png", "r.png", "--device", "cuda"], "sgbm runs in OpenCV"),
    ],
)
def test_what_the_user_can_mend_is_one_sentence(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    put_pair(tmp_path, "l.png", "r.png")
    Path("text.png").write_text("hello")
    Path("cut.png").write_bytes(Path("l.png").read_bytes()[:1000])
    write_image("small.png", np.zeros((8, 8, 3), np.uint8))
    Path("empty").mkdir()
    StereoCamera(fx=1, cx=1, cy=1, baseline_m=1, width=8, height=8).save("small.json")
    StereoCamera(fx=1, cx=1, cy=1, baseline_m=1, width=256, height=128).save("large.json")
    Path("mm.yml").write_bytes(storage(stereo_entries(RAW, 1000)))
    put_opencv_sample(tmp_path)
    with pytest.raises(AanetError) as caught:
        inside(*arguments, "--model", "sgbm", "-o", "out")
    assert message in sentence(caught.value)
    assert not Path("out").exists()


def test_an_output_that_cannot_be_written_is_one_sentence(pair, tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = run(*pair, "--model", "sgbm", "-o", tmp_path / "file")
    assert done.returncode == 2
    assert done.stderr.startswith(f"aanet: Cannot write {tmp_path / 'file'}")
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_full_disk_stops_at_once_and_loses_nothing(tmp_path, monkeypatch):
    put_folders(tmp_path, 4)
    written, replace = [], Path.replace

    def full_after_two(path: Path, target: Path) -> Path:
        if len(written) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(target)
        return replace(path, target)

    monkeypatch.setattr(aanet.io.atomic.Path, "replace", full_after_two)
    with pytest.raises(AanetError, match="no space left on device"):
        inside(tmp_path, "--model", "sgbm", "-o", tmp_path / "out", "--save", "disparity")
    assert sorted((tmp_path / "out").iterdir()) == sorted(written)  # whole files, and no temporary one
    for file in written:
        assert read_disparity(file).shape == (64, 128)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_ctrl_c_keeps_what_is_done(tmp_path):
    put_folders(tmp_path, 40)
    out = tmp_path / "out"
    words = [*COMMAND, "predict", str(tmp_path), "--model", "sgbm", "-o", str(out), "--save", "disparity"]
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts what runs in the background deaf to it, and so would be its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while process.poll() is None and not (out.is_dir() and list(out.glob("[!.]*.png"))):  # whole files
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    assert process.returncode == 130, errors
    assert "--resume continues" in output
    assert "Traceback" not in errors
    files = list(out.iterdir())
    assert 0 < len(files) < 40
    assert all(read_disparity(file).shape == (64, 128) for file in files)
