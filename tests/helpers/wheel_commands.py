"""What an installed wheel must do: without extras, and what each extra is for."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Collection
from pathlib import Path

import httpx
import numpy as np

from aanet.io.disparity import write_disparity
from aanet.io.images import write_image
from helpers.wheel_environment import Environment

_WITH_COMMANDS = ("train", "export", "web", "ros", "cluster")
SGBM = ("--model", "sgbm", "--max-disparity", "16")
HEIGHT, WIDTH, SHIFT = 48, 96, 5


def put_pair(folder: Path) -> tuple[Path, Path]:
    """A textured wall, whose disparity is `SHIFT` everywhere, in the layout of a dataset of one's own."""
    wall = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH + SHIFT, 3), dtype=np.uint8)
    left, right = folder / "left/0.png", folder / "right/0.png"
    write_image(left, np.ascontiguousarray(wall[:, :WIDTH]))
    write_image(right, np.ascontiguousarray(wall[:, SHIFT:]))
    write_disparity(folder / "disparity/0.pfm", np.full((HEIGHT, WIDTH), SHIFT, np.float32))
    return left, right


def without_extras(env: Environment) -> None:
    """The demo."""
    env.run(env.aanet, "--version")
    scores = json.loads(env.run(env.aanet, "demo", "-o", env.folder / "demo", "--json"))["scores"]
    assert 0 < scores["aanet_fast"]["epe"] < scores["sgbm"]["epe"] < 3, scores
    assert {"panel.png", "motorcycle_points.ply"} <= {path.name for path in (env.folder / "demo").iterdir()}


def hints_for_extras(env: Environment, extras: Collection[str] = _WITH_COMMANDS) -> None:
    """The commands of the extras say what to install."""
    left, right = put_pair(env.folder / "pairs")
    recording = env.folder / "recording.mcap"
    recording.write_bytes(b"\x89MCAP0\r\n")
    export = ("export", "stereonet_aa", "--height", 48, "--width", 96, "-o", env.folder / "a.onnx")
    commands: dict[str, tuple[object, ...]] = {
        "train": ("train", _recipe(env), "-o", env.folder / "run"),
        "export": export,
        "web": ("serve", "--port", 0),
        "ros": ("predict", recording, "-o", env.folder / "out"),
        "cluster": ("predict", left, right, "-o", env.folder / "out", *SGBM, "--ray", "local"),
    }
    for extra in extras:
        message = env.run(env.aanet, *commands[extra], fails=True)
        assert f"aanet[{extra}]" in message, (extra, message)
        assert len(message.splitlines()) == 1, message


def _recipe(env: Environment) -> Path:
    put_pair(env.folder / "pairs")
    recipe = env.folder / "tiny.toml"
    recipe.write_text(
        "[network]\nname = 'stereonet_aa'\nmax_disparity = 16\n"
        f"[[data]]\nname = 'folder'\nroot = '{(env.folder / 'pairs').as_posix()}'\n"
        "[run]\nworkers = 1\naccelerator = 'cpu'\n"  # the worker is a process of its own
        "[[stage]]\ncrop = [32, 48]\nbatch = 1\nsteps = 2\nlearning_rate = 1e-3\n"
    )
    return recipe


def train(env: Environment) -> None:
    """Two steps of training with a worker, then the weights."""
    env.run(env.aanet, "train", _recipe(env), "-o", env.folder / "run")
    assert (env.folder / "run/weights.safetensors").is_file()


def export(env: Environment) -> None:
    """An ONNX file, and a prediction with ONNX Runtime."""
    left, right = put_pair(env.folder / "pairs")
    size = ("--height", HEIGHT, "--width", WIDTH)
    file = env.folder / "network.onnx"
    env.run(env.aanet, "export", "stereonet_aa", "--random-weights", "--max-disparity", 24, *size, "-o", file)
    env.run(env.aanet, "predict", left, right, "--model", file, "-o", env.folder / "out")
    assert list((env.folder / "out").iterdir())


def web(env: Environment) -> None:
    """A server that matches a pair and shows the page."""
    files = {
        side: (path.name, path.read_bytes())
        for side, path in zip(("left", "right"), put_pair(env.folder / "pairs"), strict=True)
    }
    command = [str(env.aanet), "serve", "--port", "0", "--model", "sgbm"]
    process = subprocess.Popen(
        command, env=env.variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    watch = threading.Timer(300, process.kill)  # a server that never becomes ready
    watch.start()
    try:
        assert process.stdout is not None
        address = process.stdout.readline().partition("http://")[2].split("/")[0]
        assert address, process.communicate()
        with httpx.Client(base_url=f"http://{address}", trust_env=False, timeout=120) as client:
            assert "<title>" in client.get("/").text
            answer = client.post("/api/v1/disparity", files=files, params={"max_disparity": 16})
        assert answer.status_code == 200, answer.text
    finally:
        watch.cancel()
        process.terminate()
        process.communicate(timeout=120)


def ros(env: Environment) -> None:
    """A pair from a recording."""
    from helpers.recordings import Messages, write_recording

    left, right = (np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8) for _ in range(2))
    messages = Messages("mcap")
    recording = write_recording(
        env.folder / "drive",
        [
            (f"/{side}/image_rect", 0.0, messages.image(image, "rgb8"))
            for side, image in (("left", left), ("right", right))
        ],
        "mcap",
    )
    env.run(env.aanet, "predict", recording, "-o", env.folder / "out", *SGBM)
    assert list((env.folder / "out").iterdir())


def cluster(env: Environment) -> None:
    """A list of pairs on Ray on this machine, with a manifest."""
    put_pair(env.folder / "pairs")
    output = env.folder / "out"
    env.run(env.aanet, "predict", env.folder / "pairs", "-o", output, *SGBM, "--ray", "local")
    assert list((output / "manifest").glob("*.parquet"))


def pretrained(env: Environment) -> None:
    """Features that were trained on ImageNet."""
    code = "import aanet; print(aanet.build_network('aanet_fast', initialization='pretrained').architecture)"
    assert "aanet_fast" in env.run(env.python, "-c", code)


BY_EXTRA: dict[str, Callable[[Environment], None]] = {
    "train": train,
    "export": export,
    "web": web,
    "ros": ros,
    "cluster": cluster,
    "pretrained": pretrained,
}
