"""Time of a training step, compared with the baseline."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import torch

from aanet.benchmark.baseline import to_baseline
from aanet.engines.bf16_support import bf16_support, refusal, require_bf16
from aanet.evaluation.timing import time_interleaved
from aanet.models import zoo
from aanet.models.network import StereoNetwork
from aanet.ops.deform_conv import deform_conv2d_grid, using_deform_conv
from aanet.training.optimizer import make_optimizer, set_learning_rate
from aanet.training.recipe import OptimizerSpec, StageSpec
from aanet.training.stages import StageModule, make_stage, matching_loss_of


@dataclass(frozen=True)
class StepTiming:
    """Median time of one step in seconds: forward, backward and optimizer."""

    variant: str
    seconds: float
    speedup: float  # relative to the first variant


def benchmark_training_step(
    name: str = "aanet",
    crop: tuple[int, int] = (144, 336),
    batch: int = 2,
    rounds: int = 5,
    bf16: bool | None = None,
) -> list[StepTiming]:
    """Time one training step of a network in every variant, interleaved.

    By default bf16 is included only if the processor has instructions for it; otherwise it is emulated and
    many times slower.  If it is requested but cannot be used, an error is raised.
    """
    if bf16 is None:
        bf16 = refusal("torch") is None and not bf16_support("torch").emulated
    elif bf16:
        require_bf16("torch")
    torch.set_flush_denormal(True)
    stage = StageSpec(crop=crop, batch=batch, learning_rate=1e-4, steps=rounds)
    network = zoo.build(name, training_heads=True)
    steps = {
        "baseline (float32, NCHW, loop)": _as_baseline(zoo.build(name, training_heads=True), stage),
        "float32": _step(network, stage, contextlib.nullcontext),
    }
    if bf16:
        half = zoo.build(name, training_heads=True)
        steps["bf16"] = _step(half, stage, lambda: torch.autocast("cpu", torch.bfloat16))
    timings = time_interleaved(steps, rounds)
    first = next(iter(timings.values())).median
    return [StepTiming(variant, each.median, first / each.median) for variant, each in timings.items()]


def _as_baseline(network: StereoNetwork, stage: StageSpec) -> Callable[[], None]:
    return _step(to_baseline(network), stage, lambda: using_deform_conv(deform_conv2d_grid))


def _step(
    network: StereoNetwork,
    stage: StageSpec,
    context: Callable[[], contextlib.AbstractContextManager[object]],
) -> Callable[[], None]:
    """Return a function that takes one step on random images and ground truth."""
    module: StageModule = make_stage(stage, network, matching_loss_of(network)).train()
    optimizer = make_optimizer(OptimizerSpec(), module.named_parameters())
    set_learning_rate(optimizer, stage.learning_rate)
    generator = torch.Generator().manual_seed(0)
    left, right = torch.randn(2, stage.batch, 3, *stage.crop, generator=generator)
    disparity = torch.rand(stage.batch, *stage.crop, generator=generator) * network.max_disparity
    inputs = (left, right, disparity, torch.ones_like(disparity, dtype=torch.bool), disparity)

    def step() -> None:
        with context():
            loss, _ = module(*inputs)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step
