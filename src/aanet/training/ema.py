"""Exponential moving average of a network's weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class WeightAverage:
    """Exponential moving average with a warm-up, so that the random initial weights decay quickly."""

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.decay = decay
        self.updates = 0
        self.state = {name: value.detach().clone() for name, value in network.state_dict().items()}

    @torch.no_grad()
    def update(self, network: nn.Module) -> None:
        """Update the average with the network's current weights and batch statistics."""
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for name, value in network.state_dict().items():
            average = self.state[name]
            if average.is_floating_point():
                average.lerp_(value, 1 - decay)
            else:
                average.copy_(value)

    def load(self, state: dict[str, Tensor], updates: int) -> None:
        """Continue from a checkpoint."""
        self.updates = updates
        for name, value in state.items():
            self.state[name].copy_(value)
