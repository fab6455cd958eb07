"""When may an operator look at the values it is given?"""

from __future__ import annotations

import torch
from torch import Tensor


def values_can_be_read(tensor: Tensor) -> bool:
    """Whether a check may depend on data: not on meta tensors, nor while a graph is being recorded."""
    return not (tensor.is_meta or is_recording())


def is_recording() -> bool:
    """Whether the operators are being written into a graph (trace, export, compile) instead of only run."""
    return torch.jit.is_tracing() or torch.compiler.is_compiling()  # exporting counts as compiling
