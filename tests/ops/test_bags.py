"""Weighted bags against a loop, their gradients against PyTorch's and finite differences."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from aanet.ops.bags import weighted_bags


def by_loop(index: torch.Tensor, table: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    sums = []
    for rows, shares in zip(index.tolist(), weights, strict=True):
        sums.append(sum((share * table[row] for row, share in zip(rows, shares, strict=True)), table[0] * 0))
    return torch.stack(sums)


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_sums_and_gradients_are_those_of_a_loop(kind: torch.dtype) -> None:
    torch.manual_seed(0)
    index = torch.randint(0, 7, (11, 4)).to(kind)  # rows are used several times, and one not at all
    index[index == 3] = 4
    table = torch.randn(9, 5, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(11, 4, dtype=torch.float64, requires_grad=True)
    ours, loop = weighted_bags(index, table, weights), by_loop(index, table, weights)
    torch.testing.assert_close(ours, loop)
    slope = torch.randn_like(loop)
    for mine, naive in zip(
        torch.autograd.grad(ours, (table, weights), slope),
        torch.autograd.grad(loop, (table, weights), slope),
        strict=True,
    ):
        torch.testing.assert_close(mine, naive)


def test_gradients_are_those_of_finite_differences() -> None:
    torch.manual_seed(0)
    index = torch.randint(0, 6, (8, 4))
    table = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(8, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t, w: weighted_bags(index, t, w), (table, weights))


@pytest.mark.parametrize("needed", ["table", "weights"])
def test_one_gradient_alone_in_float32_with_strided_slopes(needed: str) -> None:
    torch.manual_seed(0)
    index = torch.randint(0, 50, (300, 4), dtype=torch.int32)
    table, weights = torch.randn(50, 8), torch.rand(300, 4)
    wanted = (table if needed == "table" else weights).requires_grad_()
    slope = torch.randn(8, 300).t()
    (ours,) = torch.autograd.grad(weighted_bags(index, table, weights), wanted, slope)
    reference = F.embedding_bag(index, table, per_sample_weights=weights, mode="sum")
    (theirs,) = torch.autograd.grad(reference, wanted, slope)
    torch.testing.assert_close(ours, theirs)
