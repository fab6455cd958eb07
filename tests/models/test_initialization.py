"""With the matching initialization a network matches before it has learned anything."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aanet.errors import InputError, UnsupportedError
from aanet.models import zoo
from aanet.models.initialization import initialize_for_matching
from aanet.models.network import StereoNetwork
from helpers.small_networks import ADAPTIVE, build_small

every_adaptive_network = pytest.mark.parametrize("name", ADAPTIVE)


def random_volumes(network: StereoNetwork) -> list[Tensor]:
    counts = network.cost_volume.candidates
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(1, d, 8 >> s, 12 >> s, generator=generator) for s, d in enumerate(counts)]


@every_adaptive_network
@pytest.mark.parametrize("training_heads", [False, True])
def test_aggregation_passes_the_correlation_through(name: str, training_heads: bool) -> None:
    network = build_small(name, training_heads=training_heads, initialization="matching")
    volumes = random_volumes(network)
    scores = network.aggregation(volumes)
    assert len(scores) <= len(volumes)
    for ours, volume in zip(scores, volumes, strict=False):
        torch.testing.assert_close(ours, volume.clamp(min=0))  # the first ISA block ends in a ReLU


def test_a_trained_network_becomes_the_identity_too() -> None:
    network = build_small("aanet", randomize=True)
    initialize_for_matching(network)
    volumes = random_volumes(network)
    torch.testing.assert_close(network.aggregation(volumes)[0], volumes[0].clamp(min=0))


def test_what_starts_silent_learns_from_the_first_step() -> None:
    network = build_small("aanet", training_heads=True, initialization="matching").train()
    scores = network.aggregation(random_volumes(network))
    torch.stack([(x**2).mean() for x in scores]).sum().backward()
    for key, parameter in network.aggregation.named_parameters():
        if key.endswith(("expand.1.weight", "scores.0.weight")) or "paths.0.1.1.weight" in key:
            assert parameter.grad is not None
            assert parameter.grad.any(), key


class Patches(nn.Module):
    """Stands in for learned features: the pixels of a square, at a length that makes the softmax sharp."""

    def __init__(self, scales: list[int]) -> None:
        super().__init__()
        self.scales = scales

    def forward(self, image: Tensor) -> list[Tensor]:
        maps = []
        for scale in self.scales:
            patches = F.pixel_unshuffle(image, scale)  # [B, 3·s², H/s, W/s]
            patches = F.normalize(patches - patches.mean(dim=1, keepdim=True), dim=1)
            # Equation 2 divides by the channels; a true match then scores 40.
            maps.append(patches * (40 * patches.shape[1]) ** 0.5)
        return maps


@every_adaptive_network
def test_a_plane_is_found_at_its_disparity(name: str) -> None:
    network = build_small(name, initialization="matching")
    scales = list(network.features.scales)
    network.features = Patches(scales)
    finest = scales[0]
    shift = 3 * finest  # three candidates of the finest volume
    height, width = network.sizes.minimum, network.sizes.minimum + 96
    generator = torch.Generator().manual_seed(4)
    scene = torch.randn(1, 3, height, width + shift, generator=generator)
    left, right = scene[..., :width], scene[..., shift:]  # left(x) = right(x - shift)
    with torch.inference_mode():
        output = network(left, right)
    at_cost_volume = output.disparities[0][..., 3:]
    assert (at_cost_volume - 3).abs().max() < 0.1
    inside = output.disparity[..., 2 * shift :]  # clear of the left edge, where no match exists
    assert (inside - shift).abs().max() < 0.1 * finest


@pytest.mark.parametrize("name", ["aanet", "stereonet_aa", "aanet_plus"])
def test_refinement_corrects_by_nothing(name: str) -> None:
    network = build_small(name, initialization="matching")
    side = network.sizes.minimum
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(1, 3, side, side, generator=generator) for _ in range(2))
    coarse = torch.full((1, side // network.features.scales[0], side // network.features.scales[0]), 2.0)
    *_, full = network.refinement(coarse, left, right)
    torch.testing.assert_close(full, torch.full((1, side, side), 2.0 * network.features.scales[0]))


def test_the_papers_initialization_is_not_the_identity() -> None:
    network = build_small("aanet")
    volumes = random_volumes(network)
    assert not torch.allclose(network.aggregation(volumes)[0], volumes[0].clamp(min=0), atol=0.1)


@pytest.mark.parametrize("name", ["stereonet", "gcnet", "psmnet", "ganet"])
def test_networks_without_adaptive_aggregation_refuse_it(name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"adaptive aggregation, which {name} does not have"):
        zoo.build(name, initialization="matching")


def test_an_unknown_initialization_is_named() -> None:
    with pytest.raises(InputError, match="must be one of paper, matching, pretrained; got 'zeros'"):
        zoo.build("stereonet_aa", initialization="zeros")
