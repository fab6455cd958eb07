"""The paper's ten networks and three ablations, and one of our own.

Every network has a builder and a card beside it, in the file of its family.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import torch

from aanet.errors import AanetError
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
        raise AanetError(f"There is no network {name!r}; the networks are: {', '.join(NETWORKS)}.")
    return NETWORKS[name]


def replaced_3d() -> dict[str, str]:
    """The networks with 3D convolutions, and with adaptive aggregation in their place (table 2)."""
    return {card.replaces: name for name, card in NETWORKS.items() if card.replaces is not None}


def build(
    name: str,
    max_disparity: int = 192,
    training_heads: bool = False,
    initialization: Initialization = "paper",
    regression: str | None = None,
    seed: int | None = None,
) -> StereoNetwork:
    """Build a network with fresh weights.

    Args:
        name: One of `NETWORKS`.
        max_disparity: Disparities from 0 to below this many pixels; an error names what is allowed.
        training_heads: Also predict at the coarser scales, as intermediate supervision needs.
        initialization: "paper"; "matching" to start the aggregation of an AA network as the identity; or
            "pretrained" for features from ImageNet, where the network has such a backbone.
        regression: "soft_argmin" (equation 7), or "peak" for its highest peak; None for the network's own.
        seed: Draw the weights from a generator of this seed; None draws from PyTorch's own.
    """
    builder = card(name).build
    if seed is None:
        network = builder(max_disparity, training_heads)
    else:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = builder(max_disparity, training_heads)
    if regression is not None:
        regress_by(network, regression)
    if initialization == "matching":
        initialize_for_matching(network)
    elif initialization == "pretrained":
        _load_imagenet(network)
    elif initialization != "paper":
        raise AanetError(
            f"The initialization must be one of {', '.join(get_args(Initialization))}; "
            f"it is {initialization!r}."
        )
    return to_channels_last(network)


def _load_imagenet(network: StereoNetwork) -> None:
    if not isinstance(network.features, FastFeatures):
        raise AanetError(f"{network.architecture.builder} has no backbone that was trained on ImageNet.")
    network.features.backbone.load_imagenet()


def regress_by(network: StereoNetwork, regression: str) -> None:
    """Let a network regress its disparity in another way than it was built with; no weight depends on it."""
    if regression == network.architecture.regression:
        return
    if regression not in REGRESSIONS:
        raise AanetError(f"The regression must be one of {', '.join(REGRESSIONS)}, not {regression!r}.")
    if not isinstance(network.regression, tuple(REGRESSIONS.values())):
        raise AanetError(f"{network.architecture.builder} has a regression of its own, which stays as it is.")
    network.regression = REGRESSIONS[regression]()
    network.architecture = replace(network.architecture, regression=regression)


def to_channels_last(network: StereoNetwork) -> StereoNetwork:
    """Lay 2D kernels out channels-last, which makes every 2D activation channels-last: faster on a CPU."""
    for parameter in network.parameters():
        if parameter.dim() == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return network
