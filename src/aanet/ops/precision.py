"""Keeping computations that need it in float32."""

from __future__ import annotations

import contextlib

import torch
from torch import Tensor


def without_autocast(tensor: Tensor) -> contextlib.AbstractContextManager[object]:
    """Disable autocast on the tensor's device inside the block."""
    device = tensor.device.type
    if torch.amp.is_autocast_available(device):
        return torch.autocast(device, enabled=False)
    return contextlib.nullcontext()  # devices without autocast, such as meta


def at_least_float32(tensor: Tensor) -> Tensor:
    """Convert half precision to float32; float32 and float64 are unchanged."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))
