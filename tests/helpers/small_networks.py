"""Every network of the zoo at the smallest size that still has all of its layers, for tests."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from aanet.models import zoo
from aanet.models.aggregation import AdaptiveAggregation
from aanet.models.features import PSMNetFeatures
from aanet.models.layers import DeformConv2d
from aanet.models.network import StereoNetwork

# The smallest maximum disparity each network allows that leaves a few candidates at its finest scale.
MAX_DISPARITY = {"gcnet": 32, "psmnet": 32, "psmnet_aa": 64, "gcnet_aa": 32, "ganet": 24}
ADAPTIVE = [
    name
    for name, card in zoo.NETWORKS.items()
    if card.in_paper and (name.startswith("aanet") or "_aa" in name)
]


def build_small(
    name: str,
    max_disparity: int | None = None,
    training_heads: bool = False,
    initialization: zoo.Initialization = "paper",
    randomize: bool = False,
) -> StereoNetwork:
    """Build a network with few candidates and small pooling windows, with the same weights every time.

    It is in evaluation mode.  `randomize` draws weights like those of a trained network.
    """
    torch.manual_seed(0)
    network = zoo.build(name, max_disparity or MAX_DISPARITY.get(name, 48), training_heads, initialization)
    shrink_pooling(network)
    if randomize:
        randomize_weights(network)
    return network.eval()


def shrink_pooling(network: StereoNetwork) -> None:
    """Make PSMNet's pooling windows a quarter as large, so that images of 64 pixels are large enough."""
    for features in network.modules():
        if isinstance(features, PSMNetFeatures):
            for window in features.pooling.modules():
                if isinstance(window, nn.AvgPool2d):
                    window.kernel_size = window.stride = int(window.kernel_size) // 4
            network.sizes = replace(network.sizes, minimum=64)


def thin_out(network: StereoNetwork) -> None:
    """Keep one of every run of equal blocks, because exporting takes seconds per hundred layers."""
    if isinstance(network.aggregation, AdaptiveAggregation):
        network.aggregation.stack = nn.ModuleList(
            [network.aggregation.stack[0], network.aggregation.stack[-1]]
        )
    for module in list(network.modules()):
        if isinstance(module, nn.Sequential) and len(module) > 2 and len({*map(repr, module[1:])}) == 1:
            del module[2:]


def randomize_weights(network: nn.Module) -> None:
    """Draw weights like those of a trained network: nonzero offsets, and activations that do not vanish."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d | nn.BatchNorm3d):
                assert module.running_mean is not None
                assert module.running_var is not None
                module.weight.uniform_(0.6, 1.2, generator=generator)
                module.running_var.uniform_(0.5, 1.5, generator=generator)
                module.bias.normal_(0, 0.1, generator=generator)
                module.running_mean.normal_(0, 0.1, generator=generator)
            elif isinstance(module, DeformConv2d):
                module.offset_predictor.weight.normal_(0, 0.02, generator=generator)
                assert module.offset_predictor.bias is not None
                module.offset_predictor.bias.normal_(0, 0.3, generator=generator)
        normalized = any(isinstance(module, nn.BatchNorm2d | nn.BatchNorm3d) for module in network.modules())
        for parameter in network.parameters():
            if parameter.dim() > 1 and not parameter.any():  # a correction that starts as nothing
                parameter.normal_(0, 0.3 * parameter[0].numel() ** -0.5, generator=generator)
            elif parameter.dim() > 1 and normalized:
                parameter.mul_(3**0.5)  # from a variance of 1 / (3 · inputs) to 1 / inputs


def random_pair(network: StereoNetwork, batch: int = 1, extra: int = 1) -> tuple[Tensor, Tensor]:
    """Two images of the smallest size, `extra` multiples wider than high."""
    height = network.sizes.minimum
    shape = (batch, 3, height, height + extra * network.sizes.multiple)
    generator = torch.Generator().manual_seed(2)
    return torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)
