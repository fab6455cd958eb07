"""Where half precision must not reach."""

from __future__ import annotations

import contextlib

import torch
from torch import Tensor


def without_autocast(tensor: Tensor) -> contextlib.AbstractContextManager[object]:
    """Switch automatic half precision off for what is computed inside the block, on the tensor's device."""
    device = tensor.device.type
    if torch.amp.is_autocast_available(device):
        return torch.autocast(device, enabled=False)
    return contextlib.nullcontext()  # the meta device, for one


def at_least_float32(tensor: Tensor) -> Tensor:
    """Bring half precision to float32; float64 stays."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))
