"""`aanet train`: train a network from a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aanet.cli.console import status
from aanet.cli.recipes import complete_recipe, copy_recipe, list_recipes, show_recipe
from aanet.errors import InputError

if TYPE_CHECKING:
    from aanet.training.peers import Peers
    from aanet.training.recipe import Recipe
    from aanet.training.trainer import Trainer

# Of a process that torchrun has started and that stopped before the end; 0 would mean a complete run.
STOPPED = 75
RECIPES = "Recipes"  # title of the options that do not train
_NO_RECIPE = "Give a recipe: a bundled one (aanet train --list shows them) or a TOML file."


def train(
    recipe: Annotated[
        str | None,
        typer.Argument(
            help="A bundled recipe, such as synthetic-cpu, or a TOML file of your own.",
            show_default=False,
            autocompletion=complete_recipe,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Folder of the run.",
            show_default="runs/ followed by the name of the recipe",
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change a value of the recipe, such as stage.0.batch=4. May be repeated.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run from its last checkpoint.")
    ] = False,
    auto_resume: Annotated[
        bool,
        typer.Option(
            "--auto-resume",
            help="Continue the run if there is a checkpoint, start it otherwise: for torchrun --max-restarts "
            "and schedulers, which repeat the same command.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check recipe and data, train two steps of each stage, and print an estimate of time and "
            "memory. Nothing is written.",
        ),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print the list, or the result of a dry run with the whole recipe, as JSON."
        ),
    ] = False,
    listing: Annotated[
        bool, typer.Option("--list", help="List the bundled recipes.", rich_help_panel=RECIPES)
    ] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Print the text of the recipe.", rich_help_panel=RECIPES)
    ] = False,
    copy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the text of the recipe to a new file.", rich_help_panel=RECIPES
        ),
    ] = None,
) -> None:
    """Train a network from a recipe, in one process or under torchrun.

    The folder receives checkpoints (the last three and the best one), a manifest, a log, TensorBoard files
    and, at the end, weights.safetensors. On SIGTERM or Ctrl-C a checkpoint is written before the run stops;
    --resume continues from it with the same result as an uninterrupted run. Under torchrun on several hosts,
    the folder must be on storage that they share.

    Example: aanet train synthetic-cpu --dry-run
    """
    if listing or show or copy is not None:
        _describe(recipe, listing, show, copy, as_json)
        return
    if recipe is None:
        raise InputError(_NO_RECIPE)
    import os

    # Before torch is imported: threads that wait in a busy loop take the core from the data worker and from
    # all other processes (on two busy cores, a step took 3 times as long).
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")

    from aanet.training.peers import Peers

    peers = Peers.from_environment()
    with peers.together():
        if as_json and not dry_run:
            raise InputError("--json prints a list or the result of a dry run; add --list or --dry-run.")
        if resume and auto_resume:
            raise InputError("--resume and --auto-resume exclude each other.")
        loaded = _load(recipe, overrides)

    from rich.console import Console

    from aanet.training.trainer import Trainer

    folder = output or Path("runs") / Path(recipe).stem
    flags = {"--resume": resume, "--auto-resume": auto_resume, "--dry-run": dry_run}
    _compare(loaded, [name for name, given in flags.items() if given], peers)
    if not dry_run:
        peers.require_shared(folder)
        with peers.together():
            _refuse_another_run(folder, resume or auto_resume or peers.rank > 0)
    # The result of a dry run is all that it prints to stdout.
    trainer = Trainer(loaded, None if dry_run else folder, Console(stderr=dry_run), peers)
    if resume or auto_resume:
        with peers.together():
            trainer.resume(folder, or_start=auto_resume)
    if dry_run:
        _print_dry_run(trainer, as_json)
        return
    trainer.run()
    if trainer.stopping and peers.launched:
        raise typer.Exit(STOPPED)


def _describe(recipe: str | None, listing: bool, show: bool, copy: Path | None, as_json: bool) -> None:
    """Do what the options that do not train ask for."""
    if [listing, show, copy is not None].count(True) > 1:
        raise InputError("--list, --show and --copy exclude each other.")
    if as_json and not listing:
        raise InputError("A recipe is TOML; --json prints a list or the result of a dry run.")
    if listing and recipe is not None:
        raise InputError(f"--list takes no recipe; aanet train {recipe} --show prints one.")
    if listing:
        list_recipes(as_json)
    elif recipe is None:
        raise InputError(_NO_RECIPE)
    elif copy is None:
        show_recipe(recipe)
    else:
        copy_recipe(recipe, copy)


def _load(recipe: str, overrides: list[str] | None) -> Recipe:
    """Load the recipe, and prepare what must be prepared before torch is imported."""
    from aanet.training.recipe import load_recipe

    loaded = load_recipe(recipe, overrides)
    if loaded.run.precision == "bf16-mixed" and loaded.run.accelerator in ("auto", "cpu"):
        from aanet.engines.bf16_support import bf16_support

        bf16_support("torch")  # broken AMX can only be disabled before torch is imported
    return loaded


def _compare(recipe: Recipe, flags: list[str], peers: Peers) -> None:
    """Raise an error if the processes of the run would not do the same."""
    import torch

    from aanet.version import __version__

    facts = {"version of aanet": __version__, "version of torch": torch.__version__}
    facts["recipe and --set options (by their digest)"] = recipe.digest()
    facts["options"] = " ".join(flags) or "none"
    peers.compare(facts)


def _refuse_another_run(folder: Path, allowed: bool) -> None:
    from aanet.training.checkpoint import checkpoints

    if not allowed and checkpoints(folder / "checkpoints"):
        raise InputError(
            f"{folder} already contains a run; continue it with --resume or, in a command that is repeated, "
            "--auto-resume, or choose another --output."
        )


def _print_dry_run(trainer: Trainer, as_json: bool) -> None:
    import json

    from aanet.training.dry_run import STEPS, dry_run

    with status(f"Training {STEPS} steps of each stage"):
        result = dry_run(trainer)
    if trainer.stopping:
        raise typer.Exit(130)
    if trainer.fabric.is_global_zero:
        print(json.dumps(result.as_dict(), indent=2) if as_json else "\n".join(result.lines()))
