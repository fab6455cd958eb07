"""Weighted sums of table rows, with a backward pass that costs as little as the forward pass.

PyTorch's own gradient of `embedding_bag` adds rows one by one in a random order and takes 25 times as long as
the forward pass. The gradient of a table row is itself a weighted sum, over the gradients of all bags that
used the row, so sorting the uses by row turns the backward pass into another `embedding_bag`.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

_SUM = 0  # the mode, as PyTorch's operators number it


class _WeightedBags(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, index: Tensor, table: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(index, table, weights)
        return F.embedding_bag(index, table, per_sample_weights=weights, mode="sum")

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        index, table, weights = ctx.saved_tensors
        grad = grad.contiguous()
        to_table = to_weights = None
        if ctx.needs_input_grad[1]:
            to_table = table_gradient(index, weights, grad, len(table))
        if ctx.needs_input_grad[2]:
            starts = torch.arange(0, index.numel(), index.shape[1], dtype=index.dtype)
            bags = starts.div(index.shape[1], rounding_mode="floor").repeat_interleave(index.shape[1])
            to_weights = torch.ops.aten._embedding_bag_per_sample_weights_backward(
                grad, table, index.flatten(), starts, bags, _SUM
            ).view_as(weights)
        return None, to_table, to_weights


def weighted_bags(index: Tensor, table: Tensor, weights: Tensor) -> Tensor:
    """Return Σ_j weights[n, j] · table[index[n, j]] as [N, C].

    Args:
        index: Rows of the table, [N, J].
        table: [P, C].
        weights: [N, J].
    """
    sums: Tensor = _WeightedBags.apply(index, table, weights)  # type: ignore[no-untyped-call]  # of torch
    return sums


def table_gradient(index: Tensor, weights: Tensor, grad: Tensor, rows: int) -> Tensor:
    """Return the gradient [P, C] of the table for a gradient [N, C] of the sums."""
    used, order = index.flatten().sort()
    bags = order.div(index.shape[1], rounding_mode="floor").to(index.dtype)
    starts = torch.searchsorted(used, torch.arange(rows, dtype=index.dtype)).to(index.dtype)
    return F.embedding_bag(
        bags, grad, offsets=starts, per_sample_weights=weights.flatten()[order], mode="sum"
    )
