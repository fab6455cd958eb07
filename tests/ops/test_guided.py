"""GA-Net's guided layers are the recurrences of their paper, followed pixel by pixel."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aanet.ops.guided import local_guided_aggregation, semi_global_aggregation
from helpers import naive


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


def sga_inputs(batch: int, channels: int, candidates: int, height: int, width: int) -> tuple[Tensor, Tensor]:
    weights = F.normalize(random(batch, 4, channels, 5, height, width), p=1, dim=3)
    return random(batch, channels, candidates, height, width), weights


def lga_inputs(batch: int, candidates: int, height: int, width: int) -> tuple[Tensor, Tensor]:
    return random(batch, candidates, height, width), F.normalize(random(batch, 75, height, width), p=1, dim=1)


@pytest.mark.parametrize("sizes", [(2, 2, 4, 3, 4), (1, 1, 1, 3, 2), (1, 2, 3, 1, 4), (1, 2, 2, 4, 1)])
def test_sga_has_values_and_gradients_of_the_loop(sizes: tuple[int, int, int, int, int]) -> None:
    naive.assert_same_values_and_gradients(
        semi_global_aggregation, naive.semi_global_aggregation, *sga_inputs(*sizes)
    )


@pytest.mark.parametrize("sizes", [(2, 3, 3, 4), (1, 1, 6, 2), (1, 4, 1, 1)])
def test_lga_has_values_and_gradients_of_the_loop(sizes: tuple[int, int, int, int]) -> None:
    naive.assert_same_values_and_gradients(
        local_guided_aggregation, naive.local_guided_aggregation, *lga_inputs(*sizes)
    )


def test_sga_gradcheck() -> None:
    inputs = [x.requires_grad_() for x in sga_inputs(1, 2, 3, 2, 3)]
    assert torch.autograd.gradcheck(semi_global_aggregation, inputs)


def test_lga_gradcheck() -> None:
    inputs = [x.requires_grad_() for x in lga_inputs(1, 2, 3, 3)]
    assert torch.autograd.gradcheck(local_guided_aggregation, inputs)


@pytest.mark.parametrize("direction", range(4))
def test_sga_carries_one_cost_across_the_image_in_each_direction(direction: int) -> None:
    volume = torch.zeros(1, 1, 2, 5, 5)
    start = [(0, 2), (4, 2), (2, 0), (2, 4)][direction]  # down, up, right, left
    end = [(4, 2), (0, 2), (2, 4), (2, 0)][direction]
    volume[0, 0, 0, start[0], start[1]] = 1
    weights = torch.zeros(1, 4, 1, 5, 5, 5)
    weights[:, :, :, 0] = 1  # every pixel takes its own cost …
    weights[:, direction, :, :2] = 0.5  # … but this direction half of its own and half of what came before
    result = semi_global_aggregation(volume, weights)
    assert result[0, 0, 0, end[0], end[1]] == pytest.approx(0.5**4)
    assert not result[0, 0, 1].any()


def test_sga_of_a_constant_volume_is_that_constant() -> None:
    weights = torch.rand(1, 4, 2, 5, 4, 5, dtype=torch.float64)
    weights = weights / weights.sum(dim=3, keepdim=True)
    volume = torch.full((1, 2, 3, 4, 5), 2.5, dtype=torch.float64)
    torch.testing.assert_close(semi_global_aggregation(volume, weights), volume)


def test_lga_with_only_the_middle_weight_is_the_identity() -> None:
    volume, weights = lga_inputs(1, 4, 5, 6)
    weights = torch.zeros_like(weights)
    weights[:, 25 + 12] = 1
    torch.testing.assert_close(local_guided_aggregation(volume, weights), volume)


class _Both(nn.Module):
    def forward(self, volume: Tensor, sga: Tensor, lga: Tensor) -> Tensor:
        return local_guided_aggregation(semi_global_aggregation(volume, sga)[:, 0], lga)


def test_export_reproduces_eager() -> None:
    volume, sga = (x.float() for x in sga_inputs(1, 2, 3, 4, 5))
    lga = lga_inputs(1, 3, 4, 5)[1].float()
    program = torch.export.export(_Both(), (volume, sga, lga))
    torch.testing.assert_close(program.module()(volume, sga, lga), _Both()(volume, sga, lga))


@pytest.mark.usefixtures("torch_bf16")
def test_half_precision_weights_do_not_lower_the_precision_of_the_costs() -> None:
    volume, weights = lga_inputs(1, 3, 4, 5)
    with torch.autocast("cpu", torch.bfloat16):
        assert local_guided_aggregation(volume.float(), weights.bfloat16()).dtype == torch.float32
