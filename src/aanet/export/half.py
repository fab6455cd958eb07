"""Weights as float16, for half the size: kernels only, rounded once, computed with in float32.

Biases and the statistics of batch norms, which half precision cannot hold, stay as they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import nn


def round_kernels(network: nn.Module) -> None:
    """Round every kernel to what float16 holds, in place; storing it as float16 then loses nothing more."""
    for parameter in network.parameters():
        if parameter.dim() > 1:
            parameter.data = parameter.data.half().float()


def as_half(values: NDArray[np.float32]) -> NDArray[np.float16] | None:
    """Return a constant of a graph as float16 if it is a rounded kernel, or else None."""
    if values.ndim < 2:
        return None
    half = values.astype(np.float16)
    return half if np.array_equal(half, values) else None
