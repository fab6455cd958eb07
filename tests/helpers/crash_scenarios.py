"""What `crash_points` interrupts: everything that the package writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from helpers.crash_points import Scenario, command

OUTPUTS = ("a_disparity.npy", "a_color.png", "below/b_disparity.npy")


def write_outputs(folder: Path, content: bytes = b"new") -> None:
    from aanet.io.atomic import write_together

    write_together(folder, {folder / name: content for name in OUTPUTS})


outputs_over_older_ones = Scenario(lambda folder: write_outputs(folder, b"old"), write_outputs, write_outputs)


def write_file(folder: Path) -> None:
    from aanet.io.atomic import write_bytes

    write_bytes(folder / "file", b"new")


one_file = Scenario(lambda folder: (folder / "file").write_bytes(b"old"), write_file, write_file)


def pair_of_files(folder: Path, value: float) -> Path:
    """An OpenVINO model that multiplies by a constant, written like an export."""
    import openvino
    from openvino import opset13

    from aanet.engines.openvino.pair_files import digest, save_model
    from aanet.inference.description import SECTION, WEIGHTS_DIGEST, Description
    from aanet.inference.size_rule import SizeRule
    from aanet.inference.spec import NetworkSpec

    image = opset13.parameter([1, 3, 24, 24], openvino.Type.f32, name="left")
    constant = opset13.constant(np.full((1, 3, 24, 24), value, np.float32))
    model = openvino.Model([opset13.multiply(image, constant)], [image], "model")
    spec = NetworkSpec("aanet", 48, 500, True, 3, SizeRule(12, 24))
    for key, text in Description(spec, f"random {value}").properties().items():
        model.set_rt_info(text, [SECTION, key])
    folder.mkdir(exist_ok=True)
    save_model(model, folder / "model.xml")
    written = digest((folder / "model.bin").read_bytes())
    model.set_rt_info(written, [SECTION, WEIGHTS_DIGEST])
    save_model(model, folder / "model.xml")
    return folder / "model.xml"


def publish(folder: Path, which: str = "new") -> None:
    from aanet.engines.openvino.pair_files import publish
    from aanet.io.atomic import temporary_folder

    with temporary_folder(folder) as temporary:
        for name in ("model.xml", "model.bin"):
            (temporary / name).write_bytes((folder / which / name).read_bytes())
        publish(temporary / "model.xml", folder / "model.xml")


def older_and_new_export(folder: Path) -> None:
    pair_of_files(folder, 1.0)
    pair_of_files(folder / "new", 2.0)


def read_then_publish(folder: Path) -> str:
    """Open the exported network, which must be one of the two, and export once more."""
    from aanet.engines.openvino.engine import OpenVINOEngine

    found = OpenVINOEngine.from_exported(folder / "model.xml")[1].weights
    publish(folder)
    return found


export_over_an_older_one = Scenario(older_and_new_export, publish, read_then_publish)


def store_in_cache(folder: Path) -> None:
    import os

    from aanet.engines.openvino import cache
    from aanet.inference.spec import NetworkSpec

    os.environ["AANET_CACHE"] = str(folder)

    def write(path: Path) -> NetworkSpec:
        path.write_text("model")
        path.with_suffix(".bin").write_bytes(b"weights")
        return NetworkSpec("aanet", 48, 500, True)

    assert cache.store("key", write) is not None
    assert cache.load("key") is not None


def damaged_cache(folder: Path) -> None:
    store_in_cache(folder)
    (folder / "openvino/key/model.bin").write_bytes(b"other")


cache_entry_over_a_damaged_one = Scenario(damaged_cache, store_in_cache, store_in_cache)


def put_pairs(folder: Path) -> None:
    from aanet.io.images import write_image

    for number in range(2):
        scene = np.random.default_rng(number).integers(0, 256, (24, 60, 3), np.uint8)
        write_image(folder / f"left/{number}.png", scene[:, :56])
        write_image(folder / f"right/{number}.png", scene[:, 4:])


def predict(folder: Path, *options: str) -> None:
    save = ["--model", "sgbm", "--max-disparity", "16", "--save", "disparity.npy,color"]
    command("predict", folder / "left", folder / "right", "-o", folder / "out", *save, *options)


prediction = Scenario(put_pairs, predict, lambda folder: predict(folder, "--resume"))


def synthesize(folder: Path, *options: str) -> None:
    size = ["--height", "32", "--width", "48", "--max-disparity", "16"]
    command("data", "synthesize", "-o", folder / "data", "-n", 2, "-j", 1, *size, *options)


def read_then_synthesize(folder: Path) -> int:
    """Read all pairs that are found, and render everything again."""
    from aanet.data.datasets.sceneflow import SceneFlow

    found = 0
    if list(folder.glob("data/FlyingThings3D/frames_finalpass/TRAIN/*/*/left/*.png")):
        dataset = SceneFlow(folder / "data")
        found = sum(dataset[index].disparity is not None for index in range(len(dataset)))
    synthesize(folder, "--overwrite")
    return found


synthesis = Scenario(lambda _folder: None, synthesize, read_then_synthesize)


def put_weights(folder: Path) -> None:
    from aanet.models.weights import checkpoint
    from helpers.small_networks import build_small

    checkpoint.save(build_small("stereonet_aa", 24), folder / "given.safetensors")
    (folder / "out.safetensors").write_bytes(b"older")


def convert(folder: Path) -> None:
    command(
        "convert", folder / "given.safetensors", "-o", folder / "out.safetensors", "--half", "--overwrite"
    )


conversion = Scenario(put_weights, convert, convert)

RECIPE = """
[network]
name = "stereonet_aa"
max_disparity = 24
initialization = "matching"
[[data]]
name = "folder"
root = "ROOT"
[run]
accelerator = "cpu"
workers = 0
threads = 1
log_steps = 1
checkpoint_minutes = 0
[[stage]]
crop = [24, 48]
batch = 1
steps = 3
learning_rate = 1e-3
"""


def put_training_data(folder: Path) -> None:
    from aanet.io.disparity import write_disparity

    put_pairs(folder / "pairs")
    for number in range(2):
        write_disparity(folder / f"pairs/disparity/{number}.pfm", np.full((24, 56), 4, np.float32))
    (folder / "recipe.toml").write_text(RECIPE.replace("ROOT", str(folder.with_name("work") / "pairs")))


def train(folder: Path, *options: str) -> None:
    command("train", folder / "recipe.toml", "-o", folder / "run", *options)


def continue_training(folder: Path) -> Any:
    started = list((folder / "run/checkpoints").glob("step-*"))
    train(folder, *(["--resume"] if started else []))
    log = (folder / "run/log.jsonl").read_text().splitlines()
    return [json.loads(line)["step"] for line in log]


training = Scenario(put_training_data, train, continue_training)


def export(folder: Path) -> None:
    network = ["stereonet_aa", "--random-weights", "--max-disparity", 24, "--height", 16, "--width", 24]
    command("export", *network, "-o", folder / "model.xml", "--overwrite")


def open_then_export(folder: Path) -> str:
    from aanet.engines.openvino.engine import OpenVINOEngine

    found = OpenVINOEngine.from_exported(folder / "model.xml")[1].weights
    export(folder)
    OpenVINOEngine.from_exported(folder / "model.xml")
    return found


exported_network = Scenario(lambda folder: pair_of_files(folder, 1.0), export, open_then_export)
