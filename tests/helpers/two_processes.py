"""The gradients of one step of a recipe; as a script, started by torchrun, it writes them to a folder."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from rich.console import Console
from safetensors.torch import save_file
from torch import Tensor

from aanet.training.recipe import load_recipe
from aanet.training.step import Stepper
from aanet.training.trainer import Trainer


def gradients_of_one_step(recipe: Path) -> tuple[int, dict[str, Tensor]]:
    """The rank of this process, and the gradients after the backward pass, before the weights change."""
    trainer = Trainer(load_recipe(recipe), None, Console(quiet=True))
    gradients: dict[str, Tensor] = {}
    original = Stepper._everywhere

    def look(self: Stepper, condition: Tensor) -> bool:
        for name, parameter in trainer.network.named_parameters():
            if parameter.grad is not None:
                gradients[name] = parameter.grad.detach().clone().contiguous()
        return original(self, condition)

    Stepper._everywhere = look  # type: ignore[method-assign]  # to look inside a step
    try:
        trainer.run(steps_per_stage=1)
    finally:
        Stepper._everywhere = original  # type: ignore[method-assign]
    return trainer.fabric.global_rank, gradients


if __name__ == "__main__":
    torch.set_num_threads(1)
    rank, written = gradients_of_one_step(Path(sys.argv[1]))
    save_file(written, Path(sys.argv[2]) / f"rank{rank}.safetensors")
