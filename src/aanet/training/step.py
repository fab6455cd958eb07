"""One optimizer step of a stage."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from lightning.fabric import Fabric
from torch import Tensor

from aanet.errors import AanetError, InputError
from aanet.models.network import normalize
from aanet.ops import resize_disparity
from aanet.training.batches import StereoBatch
from aanet.training.recipe import Recipe, StageSpec
from aanet.training.stages import StageModule


@dataclass(frozen=True)
class StepResult:
    """The result of a step; `batch` and `disparity` are those of its last part, for pictures."""

    loss: float
    epe: float
    finite: bool
    names: list[str]
    batch: StereoBatch
    disparity: Tensor  # [B, H, W]


class Stepper:
    """Runs optimizer steps with the module, optimizer and batches of a stage."""

    def __init__(
        self,
        fabric: Fabric,
        module: StageModule,
        optimizer: torch.optim.Optimizer,
        batches: Iterator[StereoBatch | AanetError],
        stage: StageSpec,
        recipe: Recipe,
    ) -> None:
        self.fabric = fabric
        self.plain_module = module
        self.module: Any
        self.optimizer: Any
        self.module, self.optimizer = fabric.setup(module, optimizer)
        self.batches = batches
        self.accumulate = stage.accumulate
        self.clip_norm = recipe.optimizer.clip_norm or math.inf

    def step(self) -> StepResult:
        """Accumulate gradients over the parts of a batch, then update the weights if all are finite."""
        # Restored if the step is skipped: non-finite batch statistics would break all later predictions.
        statistics = [buffer.clone() for buffer in self.plain_module.buffers()]
        parts = self._next_batches()
        losses: list[Tensor] = []
        for number, batch in enumerate(parts, start=1):
            with self.fabric.no_backward_sync(self.module, enabled=number < self.accumulate):
                loss, disparity = self.module(*self._inputs(batch))
                self.fabric.backward(loss / self.accumulate)
            losses.append(loss.detach())
        mean_loss = torch.stack(losses).mean()
        norm = self.fabric.clip_gradients(
            self.module, self.optimizer, max_norm=self.clip_norm, error_if_nonfinite=False
        )
        assert norm is not None  # None is for clipping by value only
        finite = self._everywhere(torch.isfinite(mean_loss) & torch.isfinite(norm))
        if finite:
            self.optimizer.step()
        else:
            for buffer, before in zip(self.plain_module.buffers(), statistics, strict=True):
                buffer.copy_(before)
        self.optimizer.zero_grad(set_to_none=True)
        truth = batch.truth.disparity
        full = resize_disparity(disparity, (truth.shape[1], truth.shape[2])).cpu()
        epe = end_point_error(full, truth, self.plain_module.network.max_disparity)
        names = [name for part in parts for name in part.names]
        return StepResult(float(mean_loss), epe, finite, names, batch, full)

    def _next_batches(self) -> list[StereoBatch]:
        """Return the parts of a batch; a pair that one process cannot read is an error in all of them."""
        read = [next(self.batches) for _ in range(self.accumulate)]
        error = next((each for each in read if isinstance(each, AanetError)), None)
        if not self._everywhere(torch.tensor(error is None, device=self.fabric.device)):
            raise error or InputError(
                "Another process of the run cannot read a pair; its message says which."
            )
        return [each for each in read if isinstance(each, StereoBatch)]

    def _inputs(self, batch: StereoBatch) -> list[Tensor]:
        """Move both images, normalized, and the ground truth to the device."""
        images = [
            normalize(image.to(self.fabric.device).float() / 255).contiguous(
                memory_format=torch.channels_last
            )
            for image in (batch.left, batch.right)
        ]
        truth = (batch.truth.disparity, batch.truth.visible, batch.truth.pseudo)
        return images + [each.to(self.fabric.device) for each in truth]

    def _everywhere(self, condition: Tensor) -> bool:
        """Whether the condition holds in every process, because all must step or skip together."""
        if self.fabric.world_size == 1:
            return bool(condition)
        holding = self.fabric.all_reduce(condition.float(), reduce_op="sum")
        return bool(holding == self.fabric.world_size)


def end_point_error(disparity: Tensor, truth: Tensor, max_disparity: int) -> float:
    """Mean error in pixels where the ground truth is known and in range; NaN if it is nowhere."""
    return float((disparity - truth).abs()[(truth > 0) & (truth < max_disparity)].mean())
