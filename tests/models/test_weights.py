"""Weight files: what is written comes back, and what cannot be used is refused in one sentence."""

from __future__ import annotations

import errno
import json
import math
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from aanet.errors import AanetError, ReadError, UnsupportedError
from aanet.models import zoo
from aanet.models.network import StereoNetwork
from aanet.models.weights import checkpoint, files
from helpers.small_networks import build_small


@pytest.fixture(scope="module")
def network() -> StereoNetwork:
    return build_small("stereonet_aa", randomize=True)


@pytest.fixture
def saved(network: StereoNetwork, tmp_path: Path) -> Path:
    path = tmp_path / "net.safetensors"
    checkpoint.save(network, path, {"epe": 0.87, "steps": [1, 2]})
    return path


def rewrite(
    path: Path,
    change_state: Callable[[dict[str, Tensor]], None] | None = None,
    change_metadata: Callable[[dict[str, str]], None] | None = None,
) -> Path:
    """Change a file of ours behind its back."""
    with safetensors.safe_open(path, framework="pt") as file:
        metadata = dict(file.metadata())
    state = safetensors.torch.load_file(path)
    if change_state:
        change_state(state)
    if change_metadata:
        change_metadata(metadata)
    safetensors.torch.save_file(state, path, metadata)
    return path


def test_float32_comes_back_exactly(network: StereoNetwork, saved: Path) -> None:
    loaded = checkpoint.load(saved)
    assert loaded.architecture == network.architecture
    assert not loaded.training
    for key, value in network.state_dict().items():
        assert torch.equal(loaded.state_dict()[key], value), key
    image = torch.randn(1, 3, 8, 12)
    with torch.inference_mode():
        assert torch.equal(loaded(image, image).disparity, network(image, image).disparity)


def test_what_is_loaded_is_channels_last(saved: Path) -> None:
    kernels = [p for p in checkpoint.load(saved).parameters() if p.dim() == 4]
    assert all(kernel.is_contiguous(memory_format=torch.channels_last) for kernel in kernels)


def test_float16_is_half_the_size_and_close(network: StereoNetwork, saved: Path, tmp_path: Path) -> None:
    checkpoint.save(network, tmp_path / "half.safetensors", dtype=torch.float16)
    loaded = checkpoint.load(tmp_path / "half.safetensors")
    assert {value.dtype for value in loaded.state_dict().values()} == {torch.float32, torch.int64}
    for key, value in network.state_dict().items():
        torch.testing.assert_close(loaded.state_dict()[key], value, atol=1e-4, rtol=1e-3)
    assert (tmp_path / "half.safetensors").stat().st_size < 0.6 * saved.stat().st_size


def test_float16_does_not_make_a_large_variance_infinite(tmp_path: Path) -> None:
    network = build_small("stereonet_aa", randomize=True)
    norm = next(m for m in network.modules() if isinstance(m, nn.BatchNorm2d))
    assert norm.running_var is not None
    norm.running_var.fill_(1e6)
    checkpoint.save(network, tmp_path / "half.safetensors", dtype=torch.float16)
    loaded = checkpoint.load(tmp_path / "half.safetensors").state_dict()
    assert all(torch.isfinite(value).all() for value in loaded.values())


def test_a_file_says_what_it_is(saved: Path) -> None:
    with safetensors.safe_open(saved, framework="pt") as file:
        metadata = file.metadata()
    assert json.loads(metadata["architecture"]) == {
        "builder": "stereonet_aa",
        "max_disparity": 48,
        "training_heads": False,
        "regression": "soft_argmin",
    }
    assert json.loads(metadata["normalization"])["mean"] == [0.485, 0.456, 0.406]
    stored = checkpoint.read(saved)
    assert stored.facts == {"epe": 0.87, "steps": [1, 2]}
    assert str(saved) in stored.source


def test_a_file_with_a_hint_of_the_wrong_type_is_refused(saved: Path) -> None:
    rewrite(saved, change_metadata=lambda metadata: metadata.update(hints='{"upscale_to": "wide"}'))
    with pytest.raises(AanetError, match=r"net.safetensors gives 'wide' for upscale_to; it must be a whole"):
        checkpoint.load(saved)


@pytest.mark.parametrize("name", ["gcnet_aa", "psmnet"])
def test_training_heads_are_kept_or_left_out(name: str, tmp_path: Path) -> None:
    network = zoo.build(name, 32, training_heads=True)
    path = tmp_path / "heads.safetensors"
    checkpoint.save(network, path)
    assert checkpoint.load(path).architecture.training_heads
    without = checkpoint.load(path, training_heads=False)
    assert not without.architecture.training_heads
    full = network.state_dict()
    assert all(torch.equal(value, full[key]) for key, value in without.state_dict().items())
    checkpoint.save(without, path)
    with pytest.raises(UnsupportedError, match=r"heads\.safetensors has no training heads"):
        checkpoint.load(path, training_heads=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "neither a safetensors file nor a PyTorch checkpoint"),
        (b"hello, I am a text file\n" * 20, "neither a safetensors file nor a PyTorch checkpoint"),
        (b"12345678{not json", "damaged or not a safetensors file"),
        (b"PK\x03\x04 but no archive", "truncated or not a PyTorch checkpoint"),
        (b"\x80", "truncated or not a PyTorch checkpoint"),
        (b"\x80\x02\x8a\x0al", "truncated"),
    ],
)
def test_other_files_are_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file.pth"
    path.write_bytes(content)
    with pytest.raises(ReadError, match=rf"^.*file\.pth is {message}"):
        checkpoint.load(path)


@pytest.mark.parametrize("share", [0.001, 0.3, 0.9, 0.9999])
@pytest.mark.parametrize("kind", ["safetensors", "zip", "legacy"])
def test_truncated_files_are_refused(network: StereoNetwork, kind: str, share: float, tmp_path: Path) -> None:
    path = tmp_path / "cut"
    if kind == "safetensors":
        checkpoint.save(network, path)
    else:
        torch.save(network.state_dict(), path, _use_new_zipfile_serialization=kind == "zip")
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ReadError, match=r"cut is (damaged|truncated|neither)"):
        checkpoint.load(path)


class _Payload:
    """Makes a file when it is unpickled by a reader that trusts it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("kind", ["zip", "legacy", "plain pickle"])
def test_code_in_a_pickle_is_refused_and_not_run(kind: str, tmp_path: Path) -> None:
    proof, path = tmp_path / "executed", tmp_path / "evil.pth"
    content = {"state_dict": {"weight": torch.zeros(1)}, "optimizer": _Payload(proof)}
    if kind == "plain pickle":
        path.write_bytes(pickle.dumps({"optimizer": _Payload(proof)}, protocol=2))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=kind == "zip")
    with pytest.raises(ReadError, match=r"evil\.pth (contains objects .* could execute code|is truncated)"):
        checkpoint.load(path)
    assert not proof.exists()
    if kind == "zip":  # the payload is a real one
        torch.load(path, weights_only=False)
        assert proof.is_dir()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "contains no weights"),
        ([torch.zeros(2)], "contains no weights"),
        ({"state_dict": {"weight": 3}}, "contains values other than tensors"),
        ({"epoch": 3, "weight": torch.zeros(1)}, "contains values other than tensors"),
    ],
)
def test_checkpoints_of_something_else_are_refused(content: object, message: str, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "other.pth")
    with pytest.raises(ReadError, match=rf"other\.pth {message}"):
        checkpoint.load(tmp_path / "other.pth")


def test_a_missing_an_extra_and_a_wrong_tensor_are_named(saved: Path) -> None:
    def change(state: dict[str, Tensor]) -> None:
        del state["features.last.weight"]
        state["features.surplus"] = torch.zeros(1)
        state["aggregation.scores.0.bias"] = torch.zeros(7)

    with pytest.raises(ReadError) as caught:
        checkpoint.load(rewrite(saved, change))
    message = str(caught.value)
    assert f"{saved} do not fit stereonet_aa: " in message
    assert "aggregation.scores.0.bias is [7] instead of [12]; features.last.weight is missing;" in message
    assert "features.surplus" in message


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("architecture", "{", "metadata of .* is incomplete or damaged"),
        ("architecture", '{"builder": "aanet"}', "metadata of .* is incomplete or damaged"),
        (
            "architecture",
            '{"builder": "resnet", "max_disparity": 48, "training_heads": false}',
            "no network 'resnet'",
        ),
        (
            "architecture",
            '{"builder": "aanet", "max_disparity": 50, "training_heads": false}',
            "nearest allowed",
        ),
        ("normalization", '{"mean": [0.5], "std": [0.5]}', "expects images normalized with .* not supported"),
        ("facts", "not json", "metadata of .* is incomplete or damaged"),
    ],
)
def test_wrong_metadata_is_named(key: str, value: str, message: str, saved: Path) -> None:
    rewrite(saved, change_metadata=lambda metadata: metadata.update({key: value}))
    with pytest.raises(AanetError, match=message):
        checkpoint.load(saved)


def test_a_full_disk_leaves_the_old_file_whole(
    network: StereoNetwork, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()
    write = Path.write_bytes

    def until_full(path: Path, content: bytes) -> int:
        write(path, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", until_full)
    with pytest.raises(AanetError, match=r"^Cannot write .*net\.safetensors: no space left on device\.$"):
        checkpoint.save(network, saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_an_unknown_name_lists_what_is_bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BUNDLED", tmp_path)
    with pytest.raises(ReadError, match=r"file aanet:nowhere nor .* \(bundled: none yet\)"):
        checkpoint.load("aanet:nowhere")
    checkpoint.save(build_small("stereonet_aa", randomize=True), tmp_path / "stereonet_aa-tiny.safetensors")
    assert files.bundled_names() == ["stereonet_aa:tiny"]
    assert checkpoint.load("stereonet_aa:tiny").architecture.max_disparity == 48


def test_a_folder_is_no_weights_file(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="neither a file"):
        checkpoint.load(tmp_path)


@pytest.mark.parametrize("start", [b"\x80", b"PK"])
def test_a_header_whose_length_looks_like_a_pickle_is_no_pickle(tmp_path: Path, start: bytes) -> None:
    network, path = zoo.build("stereonet_aa", max_disparity=24), tmp_path / "net.safetensors"

    def header_with(note: int) -> bytes:
        checkpoint.save(network, path, {"note": "x" * note})
        return path.read_bytes()[: len(start)]

    plain = int.from_bytes(header_with(0), "little")
    missing = (int.from_bytes(start, "little") - plain) % 256 ** len(start)
    assert header_with(missing) == start
    assert checkpoint.read(path).architecture == network.architecture


def test_files_from_before_there_was_a_choice_of_regression_have_soft_argmin(
    saved: Path, tmp_path: Path
) -> None:
    with safetensors.safe_open(saved, framework="pt") as file:
        metadata, state = file.metadata(), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    architecture = json.loads(metadata["architecture"])
    del architecture["regression"]
    older = tmp_path / "older.safetensors"
    safetensors.torch.save_file(state, older, metadata | {"architecture": json.dumps(architecture)})
    assert checkpoint.load(older).architecture.regression == "soft_argmin"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("architecture", {"builder": "stereonet_aa", "max_disparity": "24", "training_heads": False}),
        ("architecture", {"builder": "stereonet_aa", "max_disparity": 24, "training_heads": 0}),
        ("architecture", {"builder": "stereonet_aa", "max_disparity": 10**12, "training_heads": False}),
        ("architecture", {"builder": "none", "max_disparity": 24, "training_heads": False}),
        ("architecture", {"builder": ["aanet"], "max_disparity": 24, "training_heads": False}),
        ("architecture", [1]),
        ("hints", {"upscale_to": 10**400}),
        ("hints", {"upscale_to": -1}),
        ("hints", {"sharpen_edges": 1}),
        ("hints", [1]),
        ("facts", []),
        ("facts", {"scores": {"a": {"b": [1]}}}),
        ("facts", {"scores": {"a": {"b": {"EPE": "low"}}}}),
        ("normalization", {}),
    ],
)
def test_metadata_of_a_wrong_kind_is_refused(saved: Path, key: str, value: Any) -> None:
    for text in (json.dumps(value), "[" * 100_000):
        rewrite(saved, change_metadata=lambda metadata, text=text: metadata.update({key: text}))
        with pytest.raises(ReadError):
            checkpoint.read(saved)


@pytest.mark.parametrize("change", ["nan", "type"])
def test_weights_that_cannot_be_computed_with_are_refused(saved: Path, change: str) -> None:
    def damage(state: dict[str, Tensor]) -> None:
        weight = state["features.last.weight"]
        state["features.last.weight"] = weight * math.nan if change == "nan" else weight.long()

    with pytest.raises(ReadError, match=r"features\.last\.weight"):
        checkpoint.load(rewrite(saved, damage))


def test_a_compressed_checkpoint_is_refused(tmp_path: Path) -> None:
    torch.save({"weight": torch.zeros(1000)}, tmp_path / "whole.pth")
    with (
        zipfile.ZipFile(tmp_path / "whole.pth") as whole,
        zipfile.ZipFile(tmp_path / "bomb.pth", "w", zipfile.ZIP_DEFLATED) as bomb,
    ):
        for name in whole.namelist():
            bomb.writestr(name, whole.read(name))
    with pytest.raises(ReadError, match="is compressed"):
        checkpoint.read(tmp_path / "bomb.pth")
