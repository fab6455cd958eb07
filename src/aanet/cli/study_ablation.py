"""`aanet study ablation`: train AANet with and without its two modules, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aanet.cli.console import progress_bar, track
from aanet.cli.options import JsonOutput
from aanet.cli.tables import new_table
from aanet.errors import InputError

if TYPE_CHECKING:
    from aanet.data.datasets import PairSource
    from aanet.evaluation.ablation import AblationSet
    from aanet.evaluation.evaluate import Matcher
    from aanet.training.recipe import Recipe

HELD_OUT_SEED = 1_000_003  # added to the seed of the world: scenes that the training does not render
HELD_OUT_SIZE = (288, 576)


def ablation(
    recipe: Annotated[
        str, typer.Option(metavar="RECIPE", help="A recipe with the stages 'features' and 'aggregation'.")
    ] = "ablation",
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder of the study.")
    ] = Path("runs/ablation"),
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change a value of the recipe, such as stage.1.steps=2000. May be repeated.",
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DATASET=FOLDER",
            help="Also score on a dataset, such as kitti2015=data/kitti2015. May be repeated.",
        ),
    ] = None,
    scenes: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of held-out procedural scenes.")
    ] = 40,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of pairs of each dataset, evenly spaced.")
    ] = 25,
    as_json: JsonOutput = False,
) -> None:
    """Train AANet and its versions without ISA, without CSA and without both, and compare them.

    The four networks of the paper's table 1 aggregate the same frozen features of the same procedural pairs
    in the same order, without the refinement. They are scored on procedural scenes that were held out, on the
    Motorcycle pair and on datasets, at edges and in textureless areas separately. The folder receives the
    weights, ablation.md, ablation.json and a picture of a typical pair of each set. An interrupted study is
    continued by the same command.

    Example: aanet study ablation --data kitti2015=data/kitti2015 --set data.0.textures=photos
    """
    import json
    import os

    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as `aanet train` does

    from aanet.data.datasets import dataset_class, open_dataset
    from aanet.data.motorcycle import motorcycle
    from aanet.evaluation.ablation import Samples, report
    from aanet.evaluation.protocols import protocol_of
    from aanet.evaluation.report import spread
    from aanet.io.atomic import atomic_path
    from aanet.training.recipe import load_recipe

    loaded = load_recipe(recipe, overrides)
    sources: dict[str, tuple[PairSource, int]] = {
        "held-out scenes": (_held_out(loaded, scenes), scenes),
        "Motorcycle": (Samples("middlebury", [motorcycle()]), 1),
    }
    for text in data or []:
        name, equals, root = text.partition("=")
        if not equals:
            raise InputError(f"--data must have the form DATASET=FOLDER; got {text!r}.")
        splits = dataset_class(name).CARD.splits
        # Nothing is trained on datasets here, so that all of their pairs are held out.
        opened = open_dataset(name, Path(root), "all" if "all" in splits else protocol_of(name).split)
        sources[f"{name} {opened.split}"] = (opened, limit)
    weights = _train(loaded, output)
    matchers = {name: _matcher(path) for name, path in weights.items()}
    sets = []
    for name, (source, count) in track(list(sources.items()), "Scoring", len(sources)):
        sets.append(_score(name, source, matchers, spread(len(source), count), output))
    values = {"recipe_digest": loaded.digest(), "sets": {each.name: each.as_dict() for each in sets}}
    for name, text in (("ablation.json", json.dumps(values, indent=2)), ("ablation.md", report(sets))):
        with atomic_path(output / name) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
    if as_json:
        print(json.dumps(values, indent=2))
        return
    for each in sets:
        _print_table(each)
    print(f"wrote {output / 'ablation.md'}")


def _held_out(recipe: Recipe, scenes: int) -> PairSource:
    from aanet.synthetic import SyntheticWorld

    spec = recipe.data[0]
    if spec.name != "synthetic":
        raise InputError(f"The first data of the recipe must be 'synthetic'; it is {spec.name!r}.")
    return SyntheticWorld(
        HELD_OUT_SIZE,
        recipe.stage[-1].scene_disparity or recipe.network.max_disparity,
        seed=spec.world_seed + HELD_OUT_SEED,
        textures=spec.textures or None,
        length=scenes,
        kinds=spec.kinds,
    )


def _train(recipe: Recipe, folder: Path) -> dict[str, Path]:
    """Train the networks with a progress bar on a terminal, and lines of a log elsewhere."""
    from rich.console import Console

    from aanet.training.ablation import run_ablation

    console = Console(stderr=True)
    with progress_bar("Training", round(recipe.stage[-1].length)) as advance:
        done = 0

        def report(step: int, results: dict[str, tuple[float, float]]) -> None:
            nonlocal done
            for _ in range(step - done):
                advance()
            done = step
            if step % recipe.run.log_steps == 0:
                errors = ", ".join(f"{name} {epe:.2f}" for name, (_, epe) in results.items())
                console.print(f"step {step}, EPE in px: {errors}")

        return run_ablation(recipe, folder, console, report)


def _matcher(path: Path) -> Matcher:
    """Return the network alone: at the size of the images, without post-processing."""
    from aanet.matcher import StereoMatcher

    matcher = StereoMatcher(path, precision="float32")
    return lambda left, right: matcher(left, right, scale=1.0, postprocess="none", inspect=False)


def _score(
    name: str, source: PairSource, matchers: dict[str, Matcher], indices: list[int], folder: Path
) -> AblationSet:
    """Score a set, and draw its typical pair."""
    from aanet.evaluation.ablation import COMPLETE, PLAIN, picture, score_set
    from aanet.io.images import write_image

    scored = score_set(name, source, matchers, indices)
    sample = source[scored.typical_pair()]
    maps = [matchers[network](sample.left, sample.right).disparity for network in (PLAIN, COMPLETE)]
    write_image(folder / f"ablation-{name.replace(' ', '-')}.png", picture(sample, *maps))
    return scored


def _print_table(scored: AblationSet) -> None:
    from rich.console import Console

    from aanet.evaluation import paper
    from aanet.evaluation.ablation import COLUMNS
    from aanet.evaluation.report import format_number

    table = new_table(["network"], list(COLUMNS.values()), f"{scored.name}, {len(scored.indices)} pairs")
    for name in scored.evaluations:
        values = (format_number(value) for value in scored.scores(name).values())
        table.add_row(paper.ABLATION[name].method, *values)
    Console().print(table)
