"""Opening the network to export, with the origin and hints of its weights."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from aanet.engines.factory import find_source
from aanet.errors import UnsupportedError
from aanet.inference.hints import InferenceHints
from aanet.io.files import read_bytes
from aanet.models.network import StereoNetwork
from aanet.models.weights import checkpoint


class NetworkSource(NamedTuple):
    """A network with the origin and hints of its weights."""

    network: StereoNetwork
    weights: str  # "sha256:" and the digest of the file, or "random"
    hints: InferenceHints


def open_network(
    model: str | os.PathLike[str],
    weights: str | os.PathLike[str] | None = None,
    max_disparity: int | None = None,
) -> NetworkSource:
    """Open a network by name or file.

    Args:
        model: A network of the zoo, the name of bundled weights, or a weights file.
        weights: A weights file or the name of bundled weights to use instead, or "random".
        max_disparity: The search range in pixels; None for that of the weights.
    """
    source = find_source(model, weights, max_disparity)
    if not isinstance(source, Path):
        return NetworkSource(source, "random", InferenceHints())
    stored = checkpoint.read(source)
    network = stored.network(training_heads=False, max_disparity=max_disparity)
    name = network.architecture.builder
    if weights is not None and model != name:
        raise UnsupportedError(f"{weights} contains weights of {name}, not of {model}.")
    digest = hashlib.sha256(read_bytes(source, "a file of weights")).hexdigest()
    return NetworkSource(network, f"sha256:{digest}", stored.hints)
