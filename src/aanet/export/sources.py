"""From what a user asks for to the network that is exported, and what is known of its weights."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from aanet.engines.factory import find_source
from aanet.engines.networks import load_network
from aanet.errors import AanetError
from aanet.io.images import read_bytes
from aanet.models.network import StereoNetwork


def open_network(
    model: str | os.PathLike[str],
    weights: str | os.PathLike[str] | None = None,
    max_disparity: int | None = None,
) -> tuple[StereoNetwork, str]:
    """Return a network, and "sha256:" with the digest of its file of weights, or "random".

    Args:
        model: A network of the zoo, or the name or file of weights.
        weights: A file or name of weights instead of the model's own, or "random".
        max_disparity: Pixels to search; None takes what the weights were trained for.
    """
    source = find_source(model, weights, max_disparity)
    if not isinstance(source, Path):
        return source, "random"
    network = load_network(source, max_disparity)
    name = network.architecture.builder
    if weights is not None and model != name:
        raise AanetError(f"{weights} holds the network {name}, not {model}; the file says what it is.")
    return network, f"sha256:{hashlib.sha256(read_bytes(source, 'a file of weights')).hexdigest()}"
