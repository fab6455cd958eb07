"""Copy weights between networks that differ only in training heads or in parts without weights."""

from __future__ import annotations

from torch import Tensor

from aanet.errors import AanetError
from aanet.models import zoo
from aanet.models.network import StereoNetwork


def start_from(network: StereoNetwork, source: StereoNetwork) -> None:
    """Copy all weights of `source`; training heads that it lacks stay initialized."""
    wanted, given = network.architecture, source.architecture
    if wanted.builder != given.builder:
        raise AanetError(
            f"The weights to start from are of {given.builder}; the recipe trains {wanted.builder}."
        )
    if wanted.max_disparity != given.max_disparity:
        raise AanetError(
            f"The weights to start from are for a maximum disparity of {given.max_disparity}; "
            f"the recipe asks for {wanted.max_disparity}."
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
