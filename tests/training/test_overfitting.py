"""Every network learns one small pair by heart: gradients reach what they must, and the signs are right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from aanet.models import zoo
from aanet.models.network import StereoNetwork, normalize
from aanet.training import stages
from aanet.training.optimizer import make_optimizer, set_learning_rate
from aanet.training.recipe import OptimizerSpec, StageSpec
from aanet.typing import Image
from helpers.small_networks import ADAPTIVE, build_small

Texture = Callable[[np.random.Generator, int, int], Image]

NEAR, FAR = 8, 3  # disparities of a box and of the wall behind it
LONG_TO_TRAIN = ("ganet", "gcnet", "psmnet", "psmnet_aa")
LEARNED_PX = 0.75  # a constant guess is off by 1.0 px, the raw features of some networks by 0.9


def one_pair(texture: Texture, height: int, width: int) -> list[Tensor]:
    """A textured box before a textured wall, with its truth: what a stage takes."""
    rng = np.random.default_rng(5)
    wall, box = (texture(rng, height, width + NEAR) for _ in range(2))
    top, bottom, first, last = height // 4, 3 * height // 4, width // 3, 3 * width // 4
    left, right = wall[:, :width].copy(), wall[:, FAR : width + FAR].copy()
    left[top:bottom, first:last] = box[top:bottom, first:last]
    right[top:bottom, first - NEAR : last - NEAR] = box[top:bottom, first:last]
    disparity = torch.full((1, height, width), float(FAR))
    disparity[:, top:bottom, first:last] = NEAR
    images = [normalize(torch.from_numpy(view).permute(2, 0, 1)[None] / 255) for view in (left, right)]
    return [*images, disparity, torch.ones_like(disparity, dtype=torch.bool), torch.zeros_like(disparity)]


def build(name: str) -> tuple[StereoNetwork, tuple[int, int]]:
    """A network with as few candidates as it takes, and the smallest size from 48×96 or 48×128 on."""
    adaptive = name in ADAPTIVE
    fewer = {"gcnet_aa": 16, "psmnet": 16, "stereonet_aa": 16, "aanet_fast": 16}
    max_disparity = {"gcnet": 32, "psmnet_aa": 32, **fewer}.get(name, 24)
    initialization: zoo.Initialization = "matching" if adaptive else "paper"
    network = build_small(name, max_disparity, training_heads=True, initialization=initialization)
    if adaptive:
        stages.fold_temperature(network, stages.MatchingLoss(scales=3))
    width = 128 if "psmnet" in name else 96  # batch norms need more than one pooled value
    return network, (network.sizes.round_up(48), network.sizes.round_up(width))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.extended if name in LONG_TO_TRAIN else [])
        for name in sorted(zoo.NETWORKS)
    ],
)
def test_a_network_overfits_one_pair(name: str, texture: Texture) -> None:
    torch.manual_seed(0)
    network, size = build(name)
    spec = StageSpec(crop=size, batch=1, learning_rate=2e-3, steps=1)
    module = stages.make_stage(spec, network, stages.matching_loss_of(network)).train()
    optimizer = make_optimizer(OptimizerSpec(), module.named_parameters())
    set_learning_rate(optimizer, spec.learning_rate)
    pair = one_pair(texture, *size)
    errors = []
    for _ in range(150):
        loss, disparity = module(*pair)
        errors.append(float((disparity - pair[2]).abs().mean()))
        if errors[-1] < LEARNED_PX:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert errors[-1] < LEARNED_PX, f"EPE {errors[0]:.2f} → {errors[-1]:.2f} px"
