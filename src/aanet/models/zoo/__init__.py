"""The paper's ten networks and three ablations, and one network of this package.

The module of each family defines the builders and cards of its networks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import torch

from aanet.errors import InputError, UnsupportedError
from aanet.models.features import FastFeatures
from aanet.models.initialization import initialize_for_matching
from aanet.models.network import StereoNetwork
from aanet.models.regression import REGRESSIONS
from aanet.models.zoo import adaptive, volumes
from aanet.models.zoo.card import Card

Initialization = Literal["paper", "matching", "pretrained"]
NETWORKS: dict[str, Card] = {**adaptive.CARDS, **volumes.CARDS}


def card(name: str) -> Card:
    """Look up a network by its name."""
    if name not in NETWORKS:
        raise InputError(f"There is no network {name!r}; the networks are: {', '.join(NETWORKS)}.")
    return NETWORKS[name]


def replaced_3d() -> dict[str, str]:
    """Map each network with 3D convolutions to its version with adaptive aggregation (table 2)."""
    return {card.replaces: name for name, card in NETWORKS.items() if card.replaces is not None}


def build(
    name: str,
    max_disparity: int = 192,
    training_heads: bool = False,
    initialization: Initialization = "paper",
    regression: str | None = None,
    seed: int | None = None,
) -> StereoNetwork:
    """Build a network with newly initialized weights.

    Args:
        name: One of `NETWORKS`.
        max_disparity: The search range: disparities are below this many pixels. Each network has multiples
            that it accepts.
        training_heads: Also predict at the coarser scales, for intermediate supervision.
        initialization: "paper"; "matching" to start the aggregation of an AA network as the identity; or
            "pretrained" for features pretrained on ImageNet, if the network has such a backbone.
        regression: "soft_argmin" (equation 7) or "peak" (over the highest peak only); None for the network's
            default.
        seed: Seed of the weights; None draws them from PyTorch's global generator.
    """
    builder = card(name).build
    if seed is None:
        network = builder(max_disparity, training_heads)
    else:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = builder(max_disparity, training_heads)
    if regression is not None:
        set_regression(network, regression)
    if initialization == "matching":
        initialize_for_matching(network)
    elif initialization == "pretrained":
        _load_imagenet(network)
    elif initialization != "paper":
        raise InputError(
            f"The initialization must be one of {', '.join(get_args(Initialization))}; "
            f"got {initialization!r}."
        )
    return to_channels_last(network)


def _load_imagenet(network: StereoNetwork) -> None:
    if not isinstance(network.features, FastFeatures):
        raise UnsupportedError(f"{network.architecture.builder} has no backbone pretrained on ImageNet.")
    network.features.backbone.load_imagenet()


def set_regression(network: StereoNetwork, regression: str) -> None:
    """Replace the disparity regression of a network; its weights do not depend on it."""
    if regression == network.architecture.regression:
        return
    if regression not in REGRESSIONS:
        raise InputError(f"The regression must be one of {', '.join(REGRESSIONS)}; got {regression!r}.")
    if not isinstance(network.regression, tuple(REGRESSIONS.values())):
        raise UnsupportedError(f"{network.architecture.builder} has a regression that cannot be replaced.")
    network.regression = REGRESSIONS[regression]()
    network.architecture = replace(network.architecture, regression=regression)


def to_channels_last(network: StereoNetwork) -> StereoNetwork:
    """Store 2D kernels channels-last, which makes 2D activations channels-last and is faster on a CPU."""
    for parameter in network.parameters():
        if parameter.dim() == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return network
