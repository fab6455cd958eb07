"""The authors' checkpoints: recognized by their keys alone, loaded strictly, the same disparities to 1e-3."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor

from aanet.errors import ReadError
from aanet.models.weights import checkpoint, official
from helpers.parity import reference

TOLERANCES = {
    "aanet": 1e-3,
    "aanet_plus": 1e-3,
    "stereonet_aa": 1e-3,
    "gcnet_aa": 1e-3,
    "ganet_aa": 1e-3,
    "psmnet_aa": 1e-2,  # its scores are large
}
State = dict[str, Tensor]


def zero_state(name: str, max_disparity: int = 192, training_heads: bool = False) -> State:
    """A checkpoint in the authors' layout, for any range."""
    layout = official.layout_of(name, max_disparity, training_heads)
    return {key: torch.zeros(shape) for key, shape in layout.shapes.items()}


@pytest.mark.parametrize("name", TOLERANCES)
def test_the_layout_is_the_authors(name: str) -> None:
    expected = reference.layouts()[name]
    heads = "aggregation.final_conv.1.weight" in expected
    layout = official.layout_of(name, 192, heads)
    assert layout.shapes == {key: tuple(shape) for key, shape in expected.items()}
    assert len(set(layout.keys.values())) == len(layout.keys)


@pytest.mark.slow
@pytest.mark.parametrize("name", TOLERANCES)
def test_disparities_are_those_of_the_authors_network(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.pth"
    state = {f"module.{key}": torch.from_numpy(value) for key, value in reference.make_state(name).items()}
    torch.save({"state_dict": state}, path)
    network = checkpoint.load(path)
    assert network.architecture.builder == name
    left, right = reference.golden_pair(name)
    with torch.inference_mode():
        output = network(torch.from_numpy(left), torch.from_numpy(right))
    for ours, authors in zip(output.disparities, reference.golden_disparities(name), strict=True):
        thinned = ours.numpy()[:, :: reference.STEP, :: reference.STEP]
        assert np.abs(thinned - authors).max() < TOLERANCES[name]


@pytest.mark.parametrize("wrapped", [None, "state_dict", "model"])
@pytest.mark.parametrize("prefix", ["", "module."])
def test_wrapped_or_bare_with_a_prefix_or_without(wrapped: str | None, prefix: str, tmp_path: Path) -> None:
    state = {prefix + key: value for key, value in zero_state("stereonet_aa").items()}
    torch.save({wrapped: state, "epoch": 64} if wrapped else state, tmp_path / "a.pth")
    assert checkpoint.load(tmp_path / "a.pth").architecture.builder == "stereonet_aa"


@pytest.mark.parametrize("prefix", ["", "module."])
def test_the_authors_layout_in_a_safetensors_file(prefix: str, tmp_path: Path) -> None:
    state = {prefix + key: value for key, value in zero_state("stereonet_aa").items()}
    safetensors.torch.save_file(state, tmp_path / "a.safetensors")
    assert checkpoint.load(tmp_path / "a.safetensors").architecture.builder == "stereonet_aa"


@pytest.mark.parametrize(
    ("name", "max_disparity", "heads"),
    [
        ("aanet", 192, True),
        ("aanet", 192, False),
        ("aanet", 96, True),
        ("aanet_plus", 192, True),
        ("ganet_aa", 72, False),
        ("gcnet_aa", 96, True),
        ("psmnet_aa", 96, False),
        ("stereonet_aa", 96, False),
    ],
)
def test_network_maximum_disparity_and_heads_are_read_off_the_shapes(
    name: str, max_disparity: int, heads: bool
) -> None:
    layout = official.detect(zero_state(name, max_disparity, heads))
    assert (layout.name, layout.max_disparity, layout.training_heads) == (name, max_disparity, heads)


def test_heads_of_an_authors_file_can_be_left_out(tmp_path: Path) -> None:
    torch.save(zero_state("gcnet_aa", 32, training_heads=True), tmp_path / "a.pth")
    assert checkpoint.load(tmp_path / "a.pth").architecture.training_heads
    assert len(checkpoint.load(tmp_path / "a.pth", training_heads=False).aggregation.scores) == 1


def test_a_network_that_nearly_fits_is_named_with_its_first_differences(tmp_path: Path) -> None:
    state = zero_state("gcnet_aa")
    del state["feature_extractor.conv3.weight"]
    state["surplus"] = torch.zeros(1)
    state["feature_extractor.conv1.0.weight"] = torch.zeros(32, 1, 5, 5)
    torch.save(state, tmp_path / "a.pth")
    with pytest.raises(ReadError) as caught:
        checkpoint.load(tmp_path / "a.pth")
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'a.pth'}: ")
    assert "the closest is GC-Net-AA" in message
    assert "feature_extractor.conv1.0.weight is [32, 1, 5, 5] instead of [32, 3, 5, 5]; " in message
    assert "feature_extractor.conv3.weight is missing; surplus is unexpected." in message


def test_many_differences_are_counted() -> None:
    with pytest.raises(ReadError, match=r"; and \d+ more\.$"):
        official.detect({"fc.weight": torch.zeros(10, 10)})


def test_converting_keeps_every_number(tmp_path: Path) -> None:
    state = {key: torch.randn(v.shape).abs() for key, v in zero_state("stereonet_aa", 48).items()}
    torch.save(state, tmp_path / "a.pth")
    network = checkpoint.load(tmp_path / "a.pth")
    checkpoint.save(network, tmp_path / "a.safetensors")
    layout = official.layout_of("stereonet_aa", 48, training_heads=False)
    ours = checkpoint.load(tmp_path / "a.safetensors").state_dict()
    for theirs, key in layout.keys.items():
        assert torch.equal(ours[key], state[theirs].to(ours[key].dtype)), key
