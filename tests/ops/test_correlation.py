"""Correlation, difference and concatenation volumes are the loops of their definitions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from aanet.ops import concatenation_volume, correlation_volume, difference_volume
from helpers import naive

Volume = Callable[[Tensor, Tensor, int], Tensor]

TWINS: dict[Volume, Volume] = {
    correlation_volume: naive.correlation_volume,
    difference_volume: naive.difference_volume,
    concatenation_volume: naive.concatenation_volume,
}
every_volume = pytest.mark.parametrize("volume", TWINS)


def features(*shape: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(7)
    left = torch.randn(shape, generator=generator, dtype=torch.float64)
    return left.to(dtype), torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


@every_volume
@pytest.mark.parametrize(
    ("shape", "candidates"),
    [
        ((1, 3, 2, 7), 4),
        ((2, 2, 3, 5), 5),  # as many candidates as columns
        ((1, 2, 2, 3), 6),  # more candidates than columns
        ((1, 2, 3, 4), 1),
        ((1, 2, 3, 1), 1),
        ((2, 2, 3, 1), 4),  # maps of one column: only d = 0 lies inside
        ((1, 2, 1, 2), 3),
        ((1, 1, 1, 1), 2),
    ],
)
def test_values_and_gradients_are_those_of_the_loop(
    volume: Volume, shape: tuple[int, ...], candidates: int
) -> None:
    left, right = features(*shape)
    naive.assert_same_values_and_gradients(
        lambda a, b: volume(a, b, candidates), lambda a, b: TWINS[volume](a, b, candidates), left, right
    )


@every_volume
def test_gradcheck(volume: Volume) -> None:
    inputs = [x.requires_grad_() for x in features(2, 3, 2, 4)]
    assert torch.autograd.gradcheck(lambda a, b: volume(a, b, 3), inputs)


@every_volume
def test_candidates_outside_the_right_image_are_zero(volume: Volume) -> None:
    left, right = features(1, 2, 3, 6)
    result = volume(left, right, 6).movedim(-3, 0)  # [D, …, H, W]
    for d, plane in enumerate(result):
        assert not plane[..., :d].any()
        assert plane[..., d:].all()


def test_correlation_of_a_shifted_texture_peaks_at_the_shift() -> None:
    left, _ = features(1, 32, 4, 40)
    right = torch.roll(left, -5, dims=3)  # right(x - 5) = left(x)
    best = correlation_volume(left, right, 12).argmax(dim=1)
    assert (best[..., 5:] == 5).all()


@every_volume
def test_layout_in_memory_does_not_matter(volume: Volume) -> None:
    left, right = features(2, 3, 4, 6)
    expected = volume(left, right, 4)
    rearranged = (x.contiguous(memory_format=torch.channels_last) for x in (left, right))
    torch.testing.assert_close(volume(*rearranged, 4), expected)


@pytest.mark.usefixtures("torch_bf16")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_autocast_leaves_the_correlation_in_float32(dtype: torch.dtype) -> None:
    left, right = features(1, 128, 3, 20, dtype=dtype)
    with torch.autocast("cpu", torch.bfloat16):
        result = correlation_volume(left, right, 8)
    assert result.dtype == torch.float32
    exact = correlation_volume(left.double(), right.double(), 8)
    torch.testing.assert_close(result.double(), exact, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("volume", [difference_volume, concatenation_volume])
def test_other_volumes_keep_the_precision_of_the_features(volume: Volume) -> None:
    assert volume(*features(1, 2, 2, 4, dtype=torch.bfloat16), 2).dtype == torch.bfloat16


class _Wrapped(nn.Module):
    def __init__(self, volume: Volume, candidates: int) -> None:
        super().__init__()
        self.volume, self.candidates = volume, candidates

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return self.volume(left, right, self.candidates)


@every_volume
def test_export_reproduces_eager(volume: Volume) -> None:
    left, right = features(1, 4, 3, 9, dtype=torch.float32)
    program = torch.export.export(_Wrapped(volume, 6), (left, right))
    torch.testing.assert_close(program.module()(left, right), volume(left, right, 6))


@every_volume
def test_no_loop_over_candidates(volume: Volume) -> None:
    left, right = features(1, 4, 3, 40, dtype=torch.float32)

    def operators(candidates: int) -> int:
        return len(torch.export.export(_Wrapped(volume, candidates), (left, right)).graph.nodes)

    assert operators(4) == operators(32)
