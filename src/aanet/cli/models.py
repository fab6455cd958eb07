"""`aanet models`: the networks and their size, beside the paper's figures."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aanet.cli.console import track
from aanet.cli.options import ImageHeight, ImageWidth, JsonOutput

if TYPE_CHECKING:
    from rich.table import Table

_LEGEND = """\
M par      millions of parameters
G MACs     billions of multiply-accumulates as the paper counts them: features of one image only,
           without transposed 3D convolutions
total      billions of multiply-accumulates of a whole prediction
3D, def, CSA   number of 3D convolutions, deformable convolutions and cross-scale aggregation modules
mult       height and width must be multiples of this; the matcher pads images to them
*          bundled weights are available
paper      as published, for 576×960"""


def models(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="model", help="Describe this network and its bundled weights.", show_default="list all"
        ),
    ] = None,
    height: ImageHeight = 576,
    width: ImageWidth = 960,
    as_json: JsonOutput = False,
) -> None:
    """List the networks with their size and cost.

    Parameters, multiply-accumulates (MACs) and layer counts are shown beside the figures of the paper. MACs
    are counted for images of the given size.

    Example: aanet models aanet
    """
    from rich.console import Console

    from aanet.models import zoo

    if name is not None:
        _show(_describe(name, (height, width)), as_json)
        return
    names = track(zoo.NETWORKS, "Counting", len(zoo.NETWORKS))
    rows = [_describe(name, (height, width)) for name in names]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    Console().print(_table(rows, height, width))
    typer.echo(_LEGEND)


def _describe(name: str, size: tuple[int, int]) -> dict[str, Any]:
    from aanet.evaluation import paper
    from aanet.models import zoo
    from aanet.models.complexity import complexity, size_rule
    from aanet.models.weights import files

    rule = size_rule(name)
    rule.check(*size, name)
    published = paper.COMPARISON_3D.get(name) or paper.SIZE.get(name)
    return {
        "name": name,
        "title": zoo.card(name).title,
        "summary": zoo.card(name).summary,
        "size_multiple": rule.multiple,
        "minimum_size": rule.minimum,
        "weights": [known for known in files.bundled_names() if known.split(":")[0] == name],
        **dataclasses.asdict(complexity(name, size)),
        "published": published and {"parameters_m": published.parameters_m, "macs_g": published.macs_g},
    }


def _show(row: dict[str, Any], as_json: bool) -> None:
    """Print one network and what is known of its weights."""
    from rich.console import Console
    from rich.markdown import Markdown

    from aanet.models.weights import files

    row["facts"] = {name: files.facts(name) for name in row["weights"]}
    if as_json:
        typer.echo(json.dumps(row, indent=2))
        return
    typer.echo(f"{row['title']} ({row['name']}): {row['summary']}")
    typer.echo(
        f"{row['parameters'] / 1e6:.2f} M parameters, {row['total_macs'] / 1e9:.1f} G multiply-accumulates, "
        f"{row['conv3d']} 3D and {row['deform_convs']} deformable convolutions."
    )
    if not row["weights"]:
        typer.echo("No weights of it come with the package.")
    for name in row["weights"]:
        Console().print(Markdown(files.card_file(name).read_text(encoding="utf-8")))


def _table(rows: list[dict[str, Any]], height: int, width: int) -> Table:
    from rich import box
    from rich.table import Table

    title = f"Networks for a pair of {height}×{width} and disparities below 192"
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0)
    )
    table.add_column("name", no_wrap=True)
    for heading in ("M par", "paper", "G MACs", "paper", "total", "3D", "def", "CSA", "mult"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        published = row["published"] or {}
        table.add_row(
            row["name"] + (" *" if row["weights"] else ""),
            f"{row['parameters'] / 1e6:.2f}",
            _published(published.get("parameters_m")),
            f"{row['paper_macs'] / 1e9:.2f}",
            _published(published.get("macs_g")),
            f"{row['total_macs'] / 1e9:.1f}",
            *(str(row[key]) for key in ("conv3d", "deform_convs", "csa_modules", "size_multiple")),
        )
    return table


def _published(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
