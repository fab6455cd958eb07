"""Files that earlier versions wrote still open, with the same values; names that they had are still there.

docs/compatibility.md promises it. A test that fails here has found a break: mend the code, not the files.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import aanet
from aanet.cli.main import app
from aanet.io.depth import read_depth
from aanet.io.disparity import read_disparity
from aanet.io.images import read_image
from aanet.io.points import read_ply
from aanet.typing import FloatMap
from helpers import surface

HERE = Path(__file__).parent
VERSIONS = sorted(path.name for path in HERE.iterdir() if (path / "recipe.toml").is_file())
MEGABYTE = 1_000_000


@pytest.fixture(scope="module", params=VERSIONS)
def old(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of one version, unpacked."""
    folder = tmp_path_factory.mktemp("old") / request.param
    shutil.copytree(HERE / request.param, folder)
    for path in list(folder.rglob("*.gz")):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
    return folder


@pytest.fixture(scope="module")
def values() -> FloatMap:
    """What the maps contain."""
    found = (np.arange(48, dtype=np.float32).reshape(6, 8) + 1) / 4
    found[2, 3] = np.nan
    return found


def test_the_files_are_small() -> None:
    assert VERSIONS
    assert sum(path.stat().st_size for path in HERE.rglob("*") if path.is_file()) < MEGABYTE


@pytest.mark.parametrize("suffix", [".png", ".pfm", ".npy", ".npz"])
def test_disparity(old: Path, suffix: str, values: FloatMap) -> None:
    np.testing.assert_allclose(read_disparity(old / f"disparity{suffix}"), values, rtol=0, atol=1e-6)


@pytest.mark.parametrize("suffix", [".png", ".npy"])
def test_depth(old: Path, suffix: str, values: FloatMap) -> None:
    np.testing.assert_allclose(read_depth(old / f"depth{suffix}"), values, rtol=0, atol=1e-6)


def test_points(old: Path, values: FloatMap) -> None:
    points, colors = read_ply(old / "points.ply")
    known = np.isfinite(values)
    np.testing.assert_allclose(points, np.stack([values, -values, 2 * values], axis=-1)[known])
    np.testing.assert_array_equal(colors, np.arange(144, dtype=np.uint8).reshape(6, 8, 3)[known])


def test_calibrations(old: Path) -> None:
    camera = aanet.load_calibration(old / "camera.json").for_size(640, 480).camera
    assert camera == aanet.StereoCamera(400.5, 320.0, 240.0, 0.12, 640, 480, 322.5)
    rig = aanet.load_calibration(old / "rig.yml").for_size(640, 480).camera
    assert rig.baseline_m == pytest.approx(np.linalg.norm([0.11, 0.002, 0.003]))
    assert (rig.width, rig.height) == (640, 480)


def test_network_spec(old: Path) -> None:
    from aanet.engines.foreign.spec import ForeignSpec, read_table

    spec = ForeignSpec.from_table(read_table(old / "spec.toml"), "It")
    assert (spec.name, spec.max_disparity) == ("a network", 128)
    assert (spec.size.multiple, spec.size.minimum) == (32, 64)
    assert (spec.output.name, spec.output.sign, spec.output.scale) == ("disparity", "negative", 4.0)


@pytest.mark.slow
def test_manifest(old: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is in the extra cluster")
    from aanet.cluster.manifest import Manifest, read_manifest

    rows = read_manifest(str(old)).to_pylist()
    assert [(row["place"], row["name"], row["error"]) for row in rows] == [
        (0, "a", None),
        (1, "b", "It is text."),
    ]
    assert rows[0]["files"] == ["a.npy"]
    job = {"list": {"digest": "a", "pairs": 3}, "options": {"scale": "auto"}}
    Manifest(str(old)).check(job, resume=True, overwrite=False)  # a run may go on


@pytest.fixture(scope="module")
def pair(old: Path) -> list[FloatMap]:
    """The images as an engine takes them."""
    images = [read_image(old / f"pairs/{side}/0.png") for side in ("left", "right")]
    return [image.transpose(2, 0, 1)[None].astype(np.float32) / 255 for image in images]


def require_same(old: Path, maps: tuple[FloatMap, ...], tolerance: float) -> None:
    predicted = np.load(old / "predicted.npz")
    assert np.ptp(predicted["disparity"]) > 1  # otherwise anything would do
    np.testing.assert_allclose(maps[0][0], predicted["disparity"], rtol=0, atol=tolerance)
    np.testing.assert_allclose(maps[1][0], predicted["confidence"], rtol=0, atol=tolerance)


def test_weights(old: Path, pair: list[FloatMap]) -> None:
    from aanet.engines.torch import TorchEngine
    from aanet.models.weights import checkpoint

    stored = checkpoint.read(old / "weights.safetensors")
    assert stored.facts == {"steps": 100}
    assert (stored.hints.upscale_to, stored.hints.sharpen_edges) == (900, True)
    require_same(old, TorchEngine(stored.network(), "cpu")(*pair), 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".xml", ".onnx"])
def test_exported_networks(old: Path, suffix: str, pair: list[FloatMap]) -> None:
    if suffix == ".onnx":
        pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed; it is in the extra export")
    from aanet.engines.exported import open_exported

    engine = open_exported(old / f"network{suffix}")
    assert (engine.spec.name, engine.spec.max_disparity, engine.spec.hints.upscale_to) == (
        "stereonet_aa",
        24,
        900,
    )
    require_same(old, engine(*pair), 0.01)


@pytest.mark.slow
def test_exported_program(old: Path, pair: list[FloatMap]) -> None:
    from aanet.export.torch_export import ProgramEngine

    require_same(old, ProgramEngine(old / "network.pt2")(*pair), 0.01)


def test_recipe(old: Path) -> None:
    from aanet.training.recipe import load_recipe

    now = json.loads(json.dumps(load_recipe(old / "recipe.toml").as_dict()))
    before = json.loads((old / "recipe.json").read_text(encoding="utf-8"))
    assert list(changed(before, now)) == []


def changed(before: Any, now: Any, place: str = "") -> Iterator[str]:
    """The places whose values are no longer the same; new keys do not count."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key, value in before.items():
            yield from changed(value, now.get(key), f"{place}.{key}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, (value, other) in enumerate(zip(before, now, strict=True)):
            yield from changed(value, other, f"{place}.{number}")
    elif before != now:
        yield f"{place}: {before} → {now}"


@pytest.mark.slow
def test_a_training_run_goes_on(old: Path, tmp_path: Path) -> None:
    pytest.importorskip("lightning", reason="Lightning is not installed; it is in the extra train")
    run = tmp_path / "run"
    shutil.copytree(old / "checkpoints", run / "checkpoints", ignore=shutil.ignore_patterns("*.gz"))
    root = f"data.0.root={old / 'pairs'}"
    arguments = ["train", str(old / "recipe.toml"), "-o", str(run), "--resume", "--set", root]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    assert {path.name for path in (run / "checkpoints").iterdir()} >= {"step-00000002", "step-00000003"}
    assert aanet.load_network(run / "weights.safetensors").max_disparity == 24


@pytest.mark.slow
def test_names_in_python_commands_and_requests_are_still_there(old: Path) -> None:
    relied_on = json.loads((old / "surface.json").read_text(encoding="utf-8"))
    for kind, found in {"python": surface.python(), "commands": surface.commands()}.items():
        assert list(missing(relied_on[kind], found)) == []
    pytest.importorskip("fastapi", reason="FastAPI is not installed; it is in the extra web")
    assert list(missing(relied_on["requests"], surface.requests())) == []


def missing(before: surface.Surface, now: surface.Surface) -> Iterator[str]:
    for name, members in before.items():
        if name not in now:
            yield name
        else:
            yield from (f"{name}: {member}" for member in sorted(set(members) - set(now[name])))


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_what_commands_print_for_programs_has_the_same_keys(old: Path, command: str, tmp_path: Path) -> None:
    relied_on = json.loads((old / "surface.json").read_text(encoding="utf-8"))["printed"][command]
    what = [str(old / "pairs"), "-o", str(tmp_path), "--save", "disparity,color"]
    what = what if command == "predict" else ["folder", str(old / "pairs")]
    arguments = [command, *what, "--model", "sgbm", "--max-disparity", "16", "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    assert set(relied_on) - surface.keys(json.loads(done.stdout)) == set()
