"""Every engine computes the same thing; what it needs is found, or one sentence says why not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from aanet.engines.factory import open_engine
from aanet.engines.openvino.engine import OpenVINOEngine, threads_from_environment
from aanet.engines.torch import TorchEngine
from aanet.errors import AanetError, UnsupportedError
from aanet.inference.spec import EngineUnavailableError
from aanet.models import zoo
from aanet.models.weights import checkpoint, files
from helpers.matching_network import plane
from helpers.small_networks import build_small


def as_batch(*images: np.ndarray) -> list[np.ndarray]:
    return [np.ascontiguousarray(image.transpose(2, 0, 1)[None] / np.float32(255)) for image in images]


def test_openvino_agrees_with_torch_on_pairs_that_match(converted):
    reference = TorchEngine(converted.network, "cpu")
    openvino = OpenVINOEngine(converted.model, converted.spec)
    for pair, shape in ((plane(96, 192, 8), (1, 96, 192)), (plane(48, 100, 8), (1, 48, 100))):
        left, right = as_batch(*pair)
        expected, found = reference(left, right), openvino(left, right)
        assert np.median(expected[0]) == pytest.approx(8, abs=0.5)
        for one, other in zip(expected, found, strict=True):
            assert one.dtype == other.dtype == np.float32
            assert one.shape == other.shape == shape
            np.testing.assert_allclose(one, other, atol=1e-3)


@pytest.mark.slow
def test_one_conversion_of_aanet_serves_every_size_and_batch():
    network = build_small("aanet", 24)
    reference, openvino = TorchEngine(network, "cpu"), OpenVINOEngine.from_network(network)
    assert openvino.spec == reference.spec
    rng = np.random.default_rng(0)
    for shape in ((1, 3, 48, 96), (2, 3, 60, 84)):
        left, right = rng.random((2, *shape), np.float32)
        for one, other in zip(reference(left, right), openvino(left, right), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-3)


def test_few_sizes_are_kept_compiled(converted, monkeypatch):
    monkeypatch.setattr("aanet.engines.openvino.engine._MAX_COMPILED_SIZES", 2)
    engine = OpenVINOEngine(converted.model, converted.spec)
    for width in (16, 20, 16, 24):
        image = np.zeros((1, 3, 16, width), np.float32)
        assert engine(image, image)[0].shape == (1, 16, width)
    assert [shape[3] for shape in engine._compiled] == [16, 24]  # the least used one had to go


@pytest.mark.parametrize("name", [name for name, card in zoo.NETWORKS.items() if not card.dynamic_shapes])
def test_networks_that_openvino_cannot_run_go_to_torch(name):
    network = build_small(name, 24)
    with pytest.raises(EngineUnavailableError, match=f"OpenVINO cannot run {name}"):
        open_engine(network, engine="openvino")
    engine = open_engine(network, device="cpu")
    assert engine.name == "torch"
    assert f"OpenVINO cannot run {name}" in engine.description


# Between them, and AANet above, they have every part that any network has.
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.extended) for name in ("aanet_plus", "gcnet_aa", "ganet_aa")),
        *("stereonet", "gcnet", "psmnet"),
    ],
)
def test_every_other_kind_of_network_is_the_same_on_openvino(name):
    network = build_small(name, 32 if name in ("gcnet", "gcnet_aa", "psmnet") else 24)
    reference, openvino = TorchEngine(network, "cpu"), OpenVINOEngine.from_network(network)
    # Not square, and not the size that was traced.
    height = network.sizes.minimum
    width = max(network.sizes.minimum, 3 * network.sizes.multiple)
    left, right = np.random.default_rng(0).random((2, 1, 3, height, width), np.float32)
    for one, other in zip(reference(left, right), openvino(left, right), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)


def test_the_highest_peak_is_the_same_on_openvino():
    network = build_small("stereonet_aa", 48, randomize=True)
    zoo.set_regression(network, "peak")
    reference, openvino = TorchEngine(network, "cpu"), OpenVINOEngine.from_network(network)
    for one, other in zip(
        reference(*as_batch(*plane(96, 192, 8))), openvino(*as_batch(*plane(96, 192, 8))), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-2)


@pytest.mark.parametrize("engine", ["torch", "openvino"])
def test_bf16_stays_near_float32_and_gives_float32(converted, engine, request):
    request.getfixturevalue(f"{engine}_bf16")
    left, right = as_batch(*plane(48, 96, 8))
    expected = TorchEngine(converted.network, "cpu")(left, right)[0]
    if engine == "torch":
        half = TorchEngine(converted.network, "cpu", "bf16")
    else:
        half = OpenVINOEngine(converted.model, converted.spec, "bf16")
    disparity, _ = half(left, right)
    assert ", bf16, cpu" in half.description
    assert disparity.dtype == np.float32
    assert not np.array_equal(disparity, expected)
    assert np.median(np.abs(disparity - expected)) < 0.2


def test_threads_are_set_for_the_call_alone():
    network, seen = build_small("stereonet_aa", 24), []
    network.register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))
    before = torch.get_num_threads()
    image = np.zeros((1, 3, 16, 16), np.float32)
    TorchEngine(network, "cpu", threads=before + 1)(image, image)
    assert seen == [before + 1]
    assert torch.get_num_threads() == before


def test_openvino_follows_the_number_of_threads(converted, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2,1")
    assert threads_from_environment() == 2
    image = np.zeros((1, 3, 16, 16), np.float32)
    for threads, expected in ((None, 2), (1, 1)):
        engine = OpenVINOEngine(converted.model, converted.spec, threads=threads)
        engine(image, image)
        (compiled,) = engine._compiled.values()
        assert compiled.get_property("INFERENCE_NUM_THREADS") == expected
        assert compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name() == "f32"
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert threads_from_environment() is None


def test_random_weights_are_the_same_every_time_and_leave_the_generator_alone():
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    one, other = (zoo.build("stereonet_aa", 24, seed=0) for _ in range(2))
    assert torch.equal(torch.rand(1), expected)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_the_range_of_adaptive_weights_is_fixed_and_that_of_3d_ones_is_free(tmp_path):
    adaptive, volume = tmp_path / "aa.safetensors", tmp_path / "3d.safetensors"
    checkpoint.save(build_small("stereonet_aa", 24), adaptive)
    checkpoint.save(build_small("stereonet", 24), volume)
    with pytest.raises(UnsupportedError, match=r"below 24 pixels.* a scale of 0\.5 doubles the range to 48"):
        checkpoint.load(adaptive, max_disparity=48)
    network = checkpoint.load(volume, max_disparity=48)
    assert network.max_disparity == 48
    assert open_engine(volume, engine="torch", max_disparity=48, device="cpu").spec.max_disparity == 48
    with pytest.raises(AanetError, match="must be a positive multiple of 8"):
        checkpoint.load(volume, max_disparity=20)


def test_a_file_says_which_network_it_is(tmp_path):
    path = tmp_path / "some.safetensors"
    checkpoint.save(build_small("stereonet_aa", 24), path)
    assert open_engine(weights=path, engine="torch").spec.name == "stereonet_aa"
    assert open_engine("stereonet_aa", weights=path, engine="torch").spec.name == "stereonet_aa"
    with pytest.raises(UnsupportedError, match="contains weights of stereonet_aa, not of aanet"):
        open_engine("aanet", weights=path, engine="torch")


def test_bundled_weights_are_found_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BUNDLED", tmp_path)
    checkpoint.save(build_small("stereonet_aa", 24), tmp_path / "stereonet_aa-night.safetensors")
    assert files.bundled_names() == ["stereonet_aa:night"]
    assert open_engine("stereonet_aa:night", engine="torch").spec.max_disparity == 24
    with pytest.raises(UnsupportedError, match="no bundled weights for StereoNet-AA"):
        open_engine("stereonet_aa", engine="torch")
