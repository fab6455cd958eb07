"""What `aanet train` says about recipes: a list of the bundled ones, and the text of one."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from aanet.errors import WriteError

if TYPE_CHECKING:
    from aanet.training.recipe import Recipe


@dataclass(frozen=True)
class Summary:
    """What the list says about a recipe."""

    name: str
    network: str
    description: str
    data: dict[str, str]  # the dataset and its folder; none for scenes that are rendered
    start_from: str  # weights: a file, or bundled ones; empty = none
    length: str

    def lines(self, width: int) -> list[str]:
        """Format for people; the name is padded to `width`."""
        weights = Path(self.start_from)  # bundled ones, which have no suffix, are always there
        needs = [*self.data, *([f"the weights of {weights.parent.name}"] if weights.suffix else [])]
        facts = [self.network, self.length, *([f"needs {' and '.join(needs)}"] if needs else [])]
        return [f"{self.name:{width}}  {', '.join(facts)}", f"    {self.description}"]


def complete_recipe(incomplete: str) -> list[str]:
    """Return the bundled recipes and the files that begin so, for the completion of shells."""
    from glob import escape, glob

    from aanet.training import bundled_recipes

    names = [name for name in bundled_recipes.names() if name.startswith(incomplete)]
    return names + glob(f"{escape(incomplete)}*")  # noqa: PTH207 - keeps the form of what was typed


def list_recipes(as_json: bool) -> None:
    """Print all bundled recipes."""
    from aanet.training import bundled_recipes
    from aanet.training.recipe import load_recipe

    rows = [_summary(name, load_recipe(name)) for name in bundled_recipes.names()]
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(row) for row in rows], indent=2))
        return
    width = max(len(row.name) for row in rows)
    typer.echo("\n".join(line for row in rows for line in row.lines(width)))
    typer.echo("\naanet train NAME trains one; aanet train NAME --copy FILE writes a copy to be changed.")


def _summary(name: str, recipe: Recipe) -> Summary:
    from aanet.data.datasets import DATASETS

    folders = {data.name: data.root for data in recipe.data if data.name in DATASETS}
    lengths: dict[str, float] = {}
    for stage in recipe.stage:
        lengths[stage.unit] = lengths.get(stage.unit, 0) + stage.length
    length = " and ".join(f"{number:g} {unit}" for unit, number in lengths.items())
    network = recipe.network
    return Summary(name, network.name, recipe.description, folders, network.start_from, length)


def show_recipe(source: str) -> None:
    """Print the text of a recipe."""
    typer.echo(_text(source), nl=False)


def copy_recipe(source: str, target: Path) -> None:
    """Write the text of a recipe to a new file."""
    from aanet.io.atomic import atomic_path

    text = _text(source)
    if target.exists():
        raise WriteError(f"{target} already exists; choose another name for the copy.")
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8")
    typer.echo(f"Wrote {target}; train with: aanet train {target}")


def _text(source: str) -> str:
    """Return the text of a recipe that can be read."""
    from aanet.training.bundled_recipes import find
    from aanet.training.recipe import load_recipe

    load_recipe(source)
    return find(source).read_text(encoding="utf-8-sig")
