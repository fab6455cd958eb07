"""Storing kernels as float16 for half the file size; computation stays in float32.

Biases and batch-norm statistics, which may exceed the range of float16, are stored as float32.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import nn


def round_kernels(network: nn.Module) -> None:
    """Round every kernel to float16 precision in place, so that storing it as float16 is lossless."""
    for parameter in network.parameters():
        if parameter.dim() > 1:
            parameter.data = parameter.data.half().float()


def as_half(values: NDArray[np.float32]) -> NDArray[np.float16] | None:
    """Return a constant of a graph as float16 if it is a rounded kernel, else None."""
    if values.ndim < 2:
        return None
    half = values.astype(np.float16)
    return half if np.array_equal(half, values) else None
