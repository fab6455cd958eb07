"""From what a user asks for to the network that is exported, and what is known of its weights."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from aanet.engines.factory import find_source
from aanet.errors import AanetError
from aanet.inference.hints import InferenceHints
from aanet.io.images import read_bytes
from aanet.models.network import StereoNetwork
from aanet.models.weights import checkpoint


class NetworkSource(NamedTuple):
    """A network with what is known of its weights."""

    network: StereoNetwork
    weights: str  # "sha256:" with the digest of their file, or "random"
    hints: InferenceHints


def open_network(
    model: str | os.PathLike[str],
    weights: str | os.PathLike[str] | None = None,
    max_disparity: int | None = None,
) -> NetworkSource:
    """Return the network that a user asks for.

    Args:
        model: A network of the zoo, or the name or file of weights.
        weights: A file or name of weights instead of the model's own, or "random".
        max_disparity: Pixels to search; None takes what the weights were trained for.
    """
    source = find_source(model, weights, max_disparity)
    if not isinstance(source, Path):
        return NetworkSource(source, "random", InferenceHints())
    stored = checkpoint.read(source)
    network = stored.network(training_heads=False, max_disparity=max_disparity)
    name = network.architecture.builder
    if weights is not None and model != name:
        raise AanetError(f"{weights} holds the network {name}, not {model}; the file says what it is.")
    digest = hashlib.sha256(read_bytes(source, "a file of weights")).hexdigest()
    return NetworkSource(network, f"sha256:{digest}", stored.hints)
