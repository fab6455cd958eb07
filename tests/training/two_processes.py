"""Not a test by itself: started by torchrun (or alone), it writes the gradients of one step of a recipe."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from rich.console import Console
from safetensors.torch import save_file

from aanet.training.recipe import load_recipe
from aanet.training.step import Stepper
from aanet.training.trainer import Trainer


def main(recipe: str, out: str) -> None:
    torch.set_num_threads(1)
    trainer = Trainer(load_recipe(Path(recipe)), None, Console(quiet=True))
    gradients: dict[str, torch.Tensor] = {}

    original = Stepper._everywhere

    def everywhere(self: Stepper, condition: torch.Tensor) -> bool:
        """Asked after the backward pass and before the weights change."""
        for name, parameter in trainer.network.named_parameters():
            if parameter.grad is not None:
                gradients[name] = parameter.grad.detach().clone().contiguous()
        return original(self, condition)

    Stepper._everywhere = everywhere  # type: ignore[method-assign]  # to look inside a step
    trainer.run(steps_per_stage=1)
    save_file(gradients, Path(out) / f"rank{trainer.fabric.global_rank}.safetensors")


if __name__ == "__main__":
    main(*sys.argv[1:])
