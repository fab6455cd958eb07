"""Copy weights between networks that differ only in training heads or in parts without weights."""

from __future__ import annotations

from torch import Tensor

from aanet.errors import UnsupportedError
from aanet.models import zoo
from aanet.models.network import StereoNetwork


def start_from(network: StereoNetwork, source: StereoNetwork) -> None:
    """Copy all weights of `source`; training heads that it lacks keep their initialization."""
    wanted, given = network.architecture, source.architecture
    if wanted.builder != given.builder:
        raise UnsupportedError(
            f"The initial weights are those of {given.builder}, but the recipe trains {wanted.builder}."
        )
    if wanted.max_disparity != given.max_disparity:
        raise UnsupportedError(
            f"The initial weights have a maximum disparity of {given.max_disparity}, but the recipe has "
            f"{wanted.max_disparity}."
        )
    network.load_state_dict(network.state_dict() | source.state_dict())


def without_training_heads(network: StereoNetwork, state: dict[str, Tensor]) -> StereoNetwork:
    """Return the network for inference, with the weights in `state`, on the same device."""
    architecture = network.architecture
    plain = zoo.build(
        architecture.builder,
        max_disparity=architecture.max_disparity,
        regression=architecture.regression,
    )
    plain.load_state_dict({name: state[name] for name in plain.state_dict()})
    return plain.to(next(network.parameters()).device).eval()
