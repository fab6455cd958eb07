"""The moving average of weights."""

from __future__ import annotations

import torch
from torch import nn

from aanet.training.ema import WeightAverage


def test_average_follows_the_recursion() -> None:
    network = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    average = WeightAverage(network, decay=0.9)
    expected = network[0].weight.detach().clone()
    for update in range(1, 150):
        with torch.no_grad():
            network[0].weight.add_(torch.randn(2, 2))
            network[1].num_batches_tracked.add_(1)
        average.update(network)
        decay = min(0.9, (1 + update) / (10 + update))
        expected = decay * expected + (1 - decay) * network[0].weight.detach()
    assert torch.allclose(average.state["0.weight"], expected, atol=1e-5)
    assert int(average.state["1.num_batches_tracked"]) == 149


def test_average_does_not_share_memory_with_the_network() -> None:
    network = nn.Linear(2, 2)
    average = WeightAverage(network, decay=0.9)
    before = average.state["weight"].clone()
    with torch.no_grad():
        network.weight.add_(1)
    assert torch.equal(average.state["weight"], before)
