"""Write one small file of every format that the package reads back, into a folder named after the version.

    PYTHONPATH=src:tests python tests/compatibility/make_files.py            # everything, in minutes
    PYTHONPATH=src:tests python tests/compatibility/make_files.py surface    # only the names, in seconds

The files of a released version never change: the tests open them with every later version. Large ones are
compressed; their weights repeat a short sequence of values, so that little remains of them.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import shutil
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import torch
from typer.testing import CliRunner

import aanet
from aanet.cli.main import app
from aanet.cluster.manifest import Manifest, schema
from aanet.engines.torch import TorchEngine
from aanet.export.exporting import FORMATS, export_network
from aanet.inference.hints import InferenceHints
from aanet.io.depth import write_depth
from aanet.io.disparity import write_disparity
from aanet.io.images import write_image
from aanet.io.points import write_ply
from aanet.models import zoo
from aanet.models.network import StereoNetwork
from aanet.models.weights import checkpoint
from aanet.rig.lens import Lens
from aanet.rig.solve import Solution, rectify
from aanet.rig.storage import rig_yaml
from aanet.training.checkpoint import checkpoints, load_checkpoint, save_checkpoint
from aanet.training.recipe import load_recipe
from helpers import surface

HEIGHT, WIDTH, SHIFT, RANGE = 48, 96, 6, 24
PERIOD = 64  # values after which the weights repeat
LIBRARIES = ("aanet", "torch", "safetensors", "onnx", "openvino", "numpy", "pyarrow")
COMPRESSED = (".safetensors", ".onnx", ".xml", ".bin", ".pt2", ".pt")
RECIPE = """# A recipe with a value for every kind of key.
seed = 3

[network]
name = "stereonet_aa"
max_disparity = 24
initialization = "matching"
regression = "peak"

[[data]]
name = "folder"
root = "pairs"

[augmentation]
color = true
vertical_flip = 0.25
erase = 0.5
erase_px = [8, 12]
log2_scale = [-0.1, 0.1]

[optimizer]
name = "adamw"
betas = [0.9, 0.99]
weight_decay = 1e-3
clip_norm = 1.0

[run]
accelerator = "cpu"
workers = 0
ema_decay = 0.9
log_steps = 1
picture_steps = 0

[[stage]]
name = "first"
crop = [48, 96]
batch = 1
steps = 1
learning_rate = 1e-3
trains = "features"
matching_weight = 0.5

[[stage]]
name = "second"
crop = [48, 96]
batch = 1
steps = 2
learning_rate = 1e-3
schedule = "one_cycle"
"""
SPEC = """name = "a network"
max_disparity = 128
license = "MIT"

[[input]]
name = "pair"
content = "left+right"

[image]
layout = "NHWC"
color = "RGB"
range = [-1.0, 1.0]

[size]
multiple = 32
minimum = 64

[output]
name = "disparity"
channel = 1
sign = "negative"
scale = 4.0
"""


def repeating(values: torch.Tensor, positive: bool = False) -> torch.Tensor:
    """A tensor of the same shape that repeats a few values as large as those of a new kernel."""
    sequence = torch.sin(torch.arange(PERIOD, dtype=torch.float64) ** 2)
    inputs = max(values[0].numel(), 1) if values.dim() > 1 else 1
    repeated = (sequence * (2 / inputs) ** 0.5).repeat(-(-values.numel() // PERIOD))[: values.numel()]
    return (repeated.abs() if positive else repeated).reshape(values.shape).to(values.dtype)


def simplified(value: Any, key: str = "") -> Any:
    """The state of a training run with repeating values in place of its large tensors."""
    if isinstance(value, dict):
        return {name: simplified(each, str(name)) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(simplified(each) for each in value)
    large = isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel() > PERIOD
    return repeating(value, positive=key == "exp_avg_sq") if large else value


def network() -> StereoNetwork:
    """A small network with repeating weights."""
    built = zoo.build("stereonet_aa", RANGE, seed=0).eval()
    built.load_state_dict(
        {name: repeating(value) if value.dim() > 1 else value for name, value in built.state_dict().items()}
    )
    return built


def run(*arguments: object) -> str:
    """Run a command."""
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == 0, (arguments, done.output, done.exception)
    return done.stdout


def write_pair(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """A smooth wall whose disparity is `SHIFT`, in the layout of a dataset of one's own."""
    noise = np.random.default_rng(0).random((HEIGHT, WIDTH + SHIFT, 3)).astype(np.float32)
    wall = cv2.normalize(cv2.GaussianBlur(noise, (0, 0), 1.5), None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)
    left, right = (np.ascontiguousarray(wall[:, start : start + WIDTH]) for start in (0, SHIFT))
    write_image(folder / "left/0.png", left)
    write_image(folder / "right/0.png", right)
    write_disparity(folder / "disparity/0.pfm", np.full((HEIGHT, WIDTH), SHIFT, np.float32))
    return left, right


def write_networks(folder: Path, left: np.ndarray, right: np.ndarray) -> None:
    """The weights, the exported files and what the network predicts."""
    small = network()
    hints = InferenceHints(upscale_to=900, sharpen_edges=True)
    checkpoint.save(small, folder / "weights.safetensors", {"steps": 100}, hints, torch.float16)
    stored = checkpoint.load(folder / "weights.safetensors")  # as the rounding has left it
    for suffix in FORMATS.values():
        export_network(stored, folder / f"network{suffix}", weights="random", hints=hints)
    images = [image.transpose(2, 0, 1)[None].astype(np.float32) / 255 for image in (left, right)]
    disparity, confidence = TorchEngine(stored, "cpu")(*images)
    np.savez_compressed(folder / "predicted.npz", disparity=disparity[0], confidence=confidence[0])


def write_training(folder: Path) -> None:
    """A recipe, its values, and a checkpoint after the first stage."""
    recipe = folder / "recipe.toml"
    recipe.write_text(RECIPE, encoding="utf-8")
    (folder / "recipe.json").write_text(json.dumps(load_recipe(recipe).as_dict(), indent=1) + "\n")
    with tempfile.TemporaryDirectory() as temporary:
        root = f"data.0.root={folder / 'pairs'}"
        run("train", recipe, "-o", temporary, "--set", root, "--set", "stage.1.steps=1")
        state = load_checkpoint(checkpoints(Path(temporary) / "checkpoints")[-1], "stereonet_aa")
    # One step before the end of the recipe as it is in the file.
    saved = dataclasses.replace(
        state,
        weights=simplified(state.weights),
        average=simplified(state.average),
        state=simplified(state.state),
    )
    save_checkpoint(folder / "checkpoints", saved)


def write_maps(folder: Path) -> None:
    """Disparity, depth and points with unknown values, and what they contain."""
    values = (np.arange(48, dtype=np.float32).reshape(6, 8) + 1) / 4
    values[2, 3] = np.nan
    for suffix in (".png", ".pfm", ".npy", ".npz"):
        write_disparity(folder / f"disparity{suffix}", values)
    for suffix in (".png", ".npy"):
        write_depth(folder / f"depth{suffix}", values)
    points = np.stack([values, -values, 2 * values], axis=-1)
    colors = np.arange(144, dtype=np.uint8).reshape(6, 8, 3)
    write_ply(folder / "points.ply", points, colors)


def write_calibrations(folder: Path) -> None:
    """The camera of rectified images, and a rig as `aanet calibrate` writes it."""
    camera = aanet.StereoCamera(400.5, 320.0, 240.0, 0.12, 640, 480, 322.5)
    camera.save(folder / "camera.json")
    matrices = [np.array([[420.0 + side, 0, 322], [0, 421, 238], [0, 0, 1]]) for side in range(2)]
    lenses = tuple(
        Lens("pinhole", each, np.array([[-0.2, 0.05, 0.001, -0.0005, 0.0]]).T) for each in matrices
    )
    rotation, translation = np.eye(3), np.array([[-0.11], [0.002], [0.003]])
    rectification = rectify(lenses, rotation, translation, (640, 480))
    solution = Solution(
        lenses, rotation, translation, rectification, [], ([], []), [], ({}, {}), (0.1, 0.1), {}, 0.1
    )
    (folder / "rig.yml").write_text(rig_yaml(solution, (640, 480)), encoding="utf-8")


def write_rest(folder: Path) -> None:
    """A manifest, a network spec, and the versions that have written all this."""
    job = {"list": {"digest": "a", "pairs": 3}, "options": {"scale": "auto"}}
    manifest = Manifest(str(folder))
    manifest.begin(job, resume=False)
    row = {"name": "a", "left": "l.png", "right": "r.png", "files": ["a.npy"], "width": 96, "height": 48}
    failed = {"place": 1, "name": "b", "warnings": ["w"], "notes": [], "error": "It is text."}
    manifest.add(pa.Table.from_pylist([{"place": 0, "mean_confidence": 0.5, **row}, failed], schema()))
    manifest.flush()
    (folder / "spec.toml").write_text(SPEC, encoding="utf-8")
    versions = {name: metadata.version(name) for name in LIBRARIES}
    (folder / "written_by.json").write_text(json.dumps(versions, indent=1) + "\n")


def write_surface(folder: Path) -> None:
    """The names that programs rely on."""
    relied_on = {
        "python": surface.python(),
        "commands": surface.commands(),
        "requests": surface.requests(),
        "printed": {name: sorted(surface.keys(report)) for name, report in reports(folder / "pairs").items()},
    }
    (folder / "surface.json").write_text(json.dumps(relied_on, indent=1, sort_keys=True) + "\n")


def reports(pairs: Path) -> dict[str, Any]:
    """What commands print for programs."""
    sgbm = ("--model", "sgbm", "--max-disparity", 16, "--json")
    with tempfile.TemporaryDirectory() as temporary:
        predicted = run("predict", pairs, "-o", temporary, "--save", "disparity,color", *sgbm)
    return {"predict": json.loads(predicted), "evaluate": json.loads(run("evaluate", "folder", pairs, *sgbm))}


def write(folder: Path) -> None:
    """Write all files."""
    shutil.rmtree(folder, ignore_errors=True)
    write_networks(folder, *write_pair(folder / "pairs"))
    write_training(folder)
    write_maps(folder)
    write_calibrations(folder)
    write_rest(folder)
    write_surface(folder)
    for path in [path for path in folder.rglob("*") if path.suffix in COMPRESSED]:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()


if __name__ == "__main__":
    (write_surface if sys.argv[1:] == ["surface"] else write)(Path(__file__).parent / aanet.__version__)
