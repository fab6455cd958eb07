"""How fast one training step is against the plainest way to do it, measured in turn: noise hits all alike."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor, nn

from aanet.models import zoo
from aanet.models.network import StereoNetwork
from aanet.training.optimiser import make_optimiser, set_learning_rate
from aanet.training.recipe import OptimiserSpec, StageSpec
from aanet.training.stages import StageModule, make_stage, matching_loss_of


@dataclass(frozen=True)
class StepTiming:
    """Median seconds of one step: forward, backward and optimiser."""

    variant: str
    seconds: float
    speedup: float  # against the first variant


class LoopCorrelation(nn.Module):
    """Correlation (eq. 2) one candidate at a time: the plain twin of `CorrelationPyramid`."""

    def __init__(self, candidates: list[int]) -> None:
        super().__init__()
        self.candidates = candidates

    def forward(self, left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        """A volume [B, D_s, h, w] per scale."""
        return [self._volume(*maps) for maps in zip(left, right, self.candidates, strict=True)]

    def _volume(self, left: Tensor, right: Tensor, candidates: int) -> Tensor:
        volume = left.new_zeros(left.shape[0], candidates, *left.shape[2:])
        for d in range(min(candidates, left.shape[3])):
            volume[:, d, :, d:] = (left[..., d:] * right[..., : left.shape[3] - d]).mean(dim=1)
        return volume


def plain(network: StereoNetwork) -> StereoNetwork:
    """Weights laid out NCHW, correlation by a loop."""
    for parameter in network.parameters():
        parameter.data = parameter.data.contiguous()
    candidates = network.cost_volume.candidates
    assert isinstance(candidates, list)
    network.cost_volume = LoopCorrelation(candidates)
    return network


def as_built(network: StereoNetwork) -> StereoNetwork:
    """The network as the zoo builds it: channels last, correlation by one matrix product."""
    return network


# Name, what is done to the network, and whether its convolutions run in bfloat16.
VARIANTS: tuple[tuple[str, Callable[[StereoNetwork], StereoNetwork], bool], ...] = (
    ("float32, NCHW, loop correlation", plain, False),
    ("float32", as_built, False),
    ("bf16", as_built, True),
)


def benchmark_training_step(
    name: str = "aanet", crop: tuple[int, int] = (144, 336), batch: int = 2, rounds: int = 5
) -> list[StepTiming]:
    """Time one training step of a network in every variant, in turn, and take the medians."""
    torch.set_flush_denormal(True)
    stage = StageSpec(crop=crop, batch=batch, learning_rate=1e-4, steps=rounds)
    steps = [
        _step(prepare(zoo.build(name, training_heads=True)), stage, bf16) for _, prepare, bf16 in VARIANTS
    ]
    seconds: list[list[float]] = [[] for _ in steps]
    for step in steps:  # the first step of each allocates memory
        step()
    for _ in range(rounds):
        for step, times in zip(steps, seconds, strict=True):
            begin = time.perf_counter()
            step()
            times.append(time.perf_counter() - begin)
    medians = [median(times) for times in seconds]
    return [
        StepTiming(variant, each, medians[0] / each)
        for (variant, _, _), each in zip(VARIANTS, medians, strict=True)
    ]


def _step(network: StereoNetwork, stage: StageSpec, bf16: bool) -> Callable[[], None]:
    """A function that takes one step on random images and truth."""
    module: StageModule = make_stage(stage, network, matching_loss_of(network)).train()
    optimiser = make_optimiser(OptimiserSpec(), module.named_parameters())
    set_learning_rate(optimiser, stage.learning_rate)
    generator = torch.Generator().manual_seed(0)
    left, right = torch.randn(2, stage.batch, 3, *stage.crop, generator=generator)
    disparity = torch.rand(stage.batch, *stage.crop, generator=generator) * network.max_disparity
    inputs = (left, right, disparity, torch.ones_like(disparity, dtype=torch.bool), disparity)
    precision = torch.autocast("cpu", torch.bfloat16) if bf16 else contextlib.nullcontext()

    def step() -> None:
        with precision:
            loss, _ = module(*inputs)
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return step
