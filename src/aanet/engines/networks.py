"""Networks for the engines: from a file, or with random weights."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import torch

from aanet.errors import AanetError
from aanet.models import zoo
from aanet.models.aggregation import AdaptiveAggregation, GuidedAggregation
from aanet.models.network import StereoNetwork
from aanet.models.weights import checkpoint


def load_network(path: Path, max_disparity: int | None = None) -> StereoNetwork:
    """Load a network without its training heads, with another search range if its weights allow one.

    3D convolutions slide over the candidates, so any number of them will do; adaptive aggregation has a
    weight for every candidate.
    """
    stored = checkpoint.read(path)
    network = stored.network(training_heads=False)
    own = network.max_disparity
    if max_disparity in (None, own):
        return network
    if isinstance(network.aggregation, AdaptiveAggregation | GuidedAggregation):
        raise AanetError(
            f"The weights in {path} search {own} pixels of disparity, which is part of their training; "
            f"{max_disparity} cannot be had from them, but a scale of 0.5 makes them reach {2 * own}."
        )
    architecture = dataclasses.replace(stored.architecture, max_disparity=max_disparity)
    return dataclasses.replace(stored, architecture=architecture).network(training_heads=False)


def random_network(name: str, max_disparity: int | None = None) -> StereoNetwork:
    """Build a network whose weights mean nothing, the same ones every time: for tests and measurements."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return zoo.build(name, max_disparity or 192).eval()
