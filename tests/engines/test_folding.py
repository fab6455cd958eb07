"""Folding batch norms changes the graph, not what it computes."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from aanet.engines.folding import fold_batch_norms
from aanet.models import zoo
from aanet.models.layers import DeformConv2d
from helpers.small_networks import build_small


def norms(module: nn.Module) -> list[nn.Module]:
    return [part for part in module.modules() if isinstance(part, _BatchNorm)]


def make_statistics_matter(module: nn.Module) -> None:
    """Untrained batch norms are all alike; with these every one shows when it is lost."""
    generator = torch.Generator().manual_seed(0)
    for norm in norms(module):
        assert isinstance(norm, _BatchNorm)
        for name, low, high in (("weight", 0.8, 1.2), ("bias", -0.2, 0.2)):
            norm.get_parameter(name).data.uniform_(low, high, generator=generator)
        norm.get_buffer("running_mean").uniform_(-0.2, 0.2, generator=generator)
        norm.get_buffer("running_var").uniform_(0.8, 1.2, generator=generator)


@pytest.mark.slow
@pytest.mark.parametrize("name", zoo.NETWORKS)
def test_a_folded_network_predicts_the_same(name: str) -> None:
    network = build_small(name, 96)
    make_statistics_matter(network)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    side = max(network.sizes.minimum, network.sizes.multiple)
    left, right = torch.rand(2, 1, 3, side, side, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        expected, found = network(left, right), fold_batch_norms(network)(left, right)
    assert float(expected.disparity.std()) > 0.01
    torch.testing.assert_close(found.disparity, expected.disparity, atol=2e-3, rtol=1e-4)
    assert all(torch.equal(before[key], value) for key, value in network.state_dict().items())


def test_only_the_norms_of_deformable_convolutions_stay() -> None:
    network = build_small("aanet", 48)
    deformable = [part for part in network.modules() if isinstance(part, DeformConv2d)]
    assert len(norms(network)) > 3 * len(deformable)
    assert len(norms(fold_batch_norms(network))) == len(deformable)
