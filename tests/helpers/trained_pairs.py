"""Train up to a step; as a script, started by torchrun, it writes the pairs of every step of its process."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from rich.console import Console

from aanet.training.recipe import load_recipe
from aanet.training.step import Stepper, StepResult
from aanet.training.trainer import Trainer


def train(recipe: Path, folder: Path, stop_after: int) -> tuple[Trainer, list[list[str]]]:
    """Start or continue a run; returns the trainer and the names of the pairs of each step."""
    trainer = Trainer(load_recipe(recipe), folder, Console(force_terminal=False))
    trainer.resume(folder, or_start=True)
    names: list[list[str]] = []
    original = Stepper.step

    def note(self: Stepper) -> StepResult:
        result = original(self)
        names.append(result.names)
        return result

    Stepper.step = note  # type: ignore[method-assign]  # to look inside a step
    try:
        trainer.run(stop_after=stop_after)
    finally:
        Stepper.step = original  # type: ignore[method-assign]
    return trainer, names


if __name__ == "__main__":
    torch.set_num_threads(1)
    finished, seen = train(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
    output = Path(sys.argv[4]) / f"rank{finished.fabric.global_rank}.json"
    output.write_text(json.dumps(seen), encoding="utf-8")
