"""`aanet train`: train a network by a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def train(
    recipe: Annotated[Path, typer.Argument(help="A recipe in TOML, such as recipes/synthetic-cpu.toml.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder of the run [default: runs/ and the recipe's name]."),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a value: --set run.workers=2 --set stage.0.batch=4."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print everything, train two steps of each stage, write nothing."),
    ] = False,
) -> None:
    """Train a network by a recipe, in one process or under torchrun.

    The folder gets checkpoints (the last three and the best), a manifest, a log, TensorBoard files and, at
    the end, weights.safetensors. On SIGTERM or Ctrl-C a checkpoint is written; --resume goes on as if
    nothing had happened.
    """
    import os

    # Before torch is loaded: threads that wait in a busy loop take the core from the data worker, and from
    # everyone else on the machine (a step was 3 times as slow on two busy cores).
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")

    from rich.console import Console

    from aanet.errors import InputError
    from aanet.training.checkpoint import checkpoints
    from aanet.training.recipe import load_recipe

    console = Console()
    brief = ["run.log_steps=1"] if dry_run else []  # two steps are all there is to see
    loaded = load_recipe(recipe, [*(overrides or []), *brief])
    folder = out or Path("runs") / recipe.stem
    if checkpoints(folder / "checkpoints") and not resume and not dry_run:
        raise InputError(
            f"{folder} already holds a run: add --resume to go on with it, or choose another --out."
        )

    if loaded.run.precision == "bf16-mixed" and loaded.run.accelerator in ("auto", "cpu"):
        from aanet.engines.bf16_support import bf16_support

        bf16_support("torch")  # broken AMX can only be switched off before torch is loaded
    from aanet.training.trainer import Trainer  # loads torch, after everything that can fail at once

    trainer = Trainer(loaded, None if dry_run else folder, console)
    if resume:
        trainer.resume(folder)
    if dry_run:
        trainer.reporter.describe(trainer.manifest(), trainer.network)
    trainer.run(steps_per_stage=2 if dry_run else None)
