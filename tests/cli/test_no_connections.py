"""No command opens a network connection, and no library leaves an identifier of the user behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from aanet.io.images import write_image
from helpers import without_sockets

SCRIPT = Path(without_sockets.__file__)


def run(*commands: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run commands without sockets, in a home folder of their own."""
    # ONNX Runtime switches its telemetry off where these are set.
    hidden = {"CI", "GITHUB_ACTIONS", "TF_BUILD", "ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"HOME": str(folder), "AANET_CACHE": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, str(SCRIPT), json.dumps(commands)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_socket_ends_the_process() -> None:
    script = "from helpers.without_sockets import *; forbid_sockets(); import socket; socket.socket()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, SCRIPT.parents[1:2]))}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=False)
    assert done.returncode != 0


def test_a_socket_of_a_child_ends_the_process() -> None:
    script = (
        "from helpers.without_sockets import *; forbid_sockets(); import os, socket, time\n"
        "if os.fork() == 0: socket.socket()\n"
        "time.sleep(60)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, SCRIPT.parents[1:2]))}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=False)
    assert done.returncode < 0


@pytest.mark.slow
def test_commands_open_no_socket(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    files = {name: str(tmp_path / name) for name in ("left.png", "right.png", "model.onnx", "out")}
    for side in ("left.png", "right.png"):
        write_image(files[side], np.random.default_rng(0).integers(0, 256, (16, 24, 3), np.uint8))
    sizes = ["--height", "16", "--width", "24"]
    untrained = ["stereonet_aa", "--random-weights", "--max-disparity", "24"]
    pair = [files["left.png"], files["right.png"]]
    done = run(
        ["export", *untrained, *sizes, "-o", files["model.onnx"]],
        ["predict", *pair, "--model", files["model.onnx"], "-o", files["out"]],
        ["benchmark", "stereonet_aa", "--engines", "openvino", *sizes, "--rounds", "1", "--no-memory"],
        ["doctor"],
        folder=home,
    )
    assert done.returncode == 0, done.stderr
    assert any(Path(files["out"]).iterdir())
    # Identifiers of the user: of ONNX Runtime, of OpenVINO.
    left = [path for path in home.rglob("*") if "onnxruntime" in path.name or path.name == "deviceid"]
    assert left == []
    assert not (home / "intel").exists()
