"""Tests of whether an operator may inspect the values of its inputs."""

from __future__ import annotations

import torch
from torch import Tensor


def values_can_be_read(tensor: Tensor) -> bool:
    """Whether a check may read the tensor's values: not on meta tensors, nor while a graph is recorded."""
    return not (tensor.is_meta or is_recording())


def is_recording() -> bool:
    """Whether operators are being recorded into a graph by tracing, export or compilation."""
    return torch.jit.is_tracing() or torch.compiler.is_compiling()  # also true during torch.export
