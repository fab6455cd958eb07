"""Bringing images to a size that a network takes, and maps back."""

from __future__ import annotations

import numpy as np

from aanet.data.sample import FloatMap
from aanet.engines.engine import NetworkFacts


def padded_size(size: int, facts: NetworkFacts) -> int:
    """Return the smallest side that a network takes and that holds `size` pixels."""
    return max(-(-size // facts.size_multiple) * facts.size_multiple, facts.minimum_size)


def pad(images: FloatMap, facts: NetworkFacts) -> FloatMap:
    """Repeat the last row and the last column of [B, 3, H, W] until the network takes the size.

    The left border stays where it is: there a candidate that falls outside the right image scores 0, as in
    training, and columns of repeated pixels would make such candidates look like matches.
    """
    height, width = images.shape[2:]
    below, right = padded_size(height, facts) - height, padded_size(width, facts) - width
    return np.pad(images, ((0, 0), (0, 0), (0, below), (0, right)), mode="edge")
