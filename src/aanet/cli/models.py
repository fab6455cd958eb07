"""`aanet models`: the networks and their size, beside the paper's figures."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aanet.cli.console import track
from aanet.cli.options import ImageHeight, ImageWidth, JsonOutput
from aanet.cli.tables import new_table
from aanet.cli.zero_shot import print_zero_shot

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
_SCORE_TITLES = {"epe": "EPE", "bad2": "bad-2", "d1": "D1", "edge_epe": "edges"}


def models(
    model: Annotated[
        str | None,
        typer.Argument(
            help="Describe this network and its bundled weights, or this weight file.",
            show_default="list all",
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

    if model is not None and model not in zoo.NETWORKS:
        _show_weights(model, as_json)
        return
    if model is not None:
        _show(_describe(model, (height, width)), as_json)
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
        "when": zoo.card(name).when,
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

    from aanet.evaluation.zero_shot.bundled import Standings
    from aanet.models.weights import files

    row["facts"] = {name: files.facts(name) for name in row["weights"]}
    standings = Standings.of(row["weights"])
    row["zero_shot"] = standings and standings.as_dict()
    if as_json:
        typer.echo(json.dumps(row, indent=2))
        return
    typer.echo(f"{row['title']} ({row['name']}): {row['summary']}. {row['when']}")
    typer.echo(
        f"{row['parameters'] / 1e6:.2f} M parameters, {row['total_macs'] / 1e9:.1f} G multiply-accumulates, "
        f"{row['conv3d']} 3D and {row['deform_convs']} deformable convolutions."
    )
    if not row["weights"]:
        typer.echo("There are no bundled weights of this network.")
    for name in row["weights"]:
        Console().print(Markdown(files.card_file(name).read_text(encoding="utf-8")))
    if standings is not None:
        print_zero_shot(*standings.table(), standings.lines())


def _show_weights(source: str, as_json: bool) -> None:
    """Print what a weight file says about itself."""
    from rich.console import Console

    row = _describe_weights(source)
    if as_json:
        typer.echo(json.dumps(row, indent=2))
        return
    typer.echo(
        f"{row['path']}: {row['title']} ({row['network']}), {row['parameters'] / 1e6:.2f} M parameters, "
        f"{row['bytes'] / 1e6:.1f} MB"
    )
    facts = {key: value for key, value in row["facts"].items() if key != "scores"}
    lines = {
        "disparity range": f"below {row['max_disparity']} pixels"
        + (", fixed by the weights" if row["fixed_range"] else ""),
        "regression": row["regression"],
        "training heads": "yes" if row["training_heads"] else "no",
        "inference hints": _hints_in_words(row["hints"]),
        **{key.replace("_", " "): str(value).replace("`", "") for key, value in facts.items()},
    }
    lines.setdefault("trained on", "not stated")
    width = max(map(len, lines))
    for key, words in lines.items():
        typer.echo(f"  {key:{width}s}  {words}")
    if "scores" in row["facts"]:
        Console().print(_score_table(row["facts"]["scores"]))


def _score_table(scores: dict[str, dict[str, dict[str, float]]]) -> Table:
    """The scores that a weight file carries, by model and dataset."""
    metrics = dict.fromkeys(metric for sets in scores.values() for row in sets.values() for metric in row)
    headings = tuple(_SCORE_TITLES.get(metric, metric) for metric in metrics)
    table = new_table(("model", "dataset"), headings, "Scores on real pairs")
    for model, sets in scores.items():
        for dataset, row in sets.items():
            cells = [f"{row[metric]:.2f}" if metric in row else "–" for metric in metrics]
            table.add_row(model, dataset, *cells)
    return table


def _describe_weights(source: str) -> dict[str, Any]:
    from aanet.errors import InputError, did_you_mean
    from aanet.evaluation.naming import is_file_name
    from aanet.models import zoo
    from aanet.models.weights import checkpoint, files

    if not is_file_name(source) and not files.bundled_file(source).is_file():
        raise InputError(
            f"There is no network {source!r}{did_you_mean(source, zoo.NETWORKS)}; give one of "
            f"{', '.join(zoo.NETWORKS)}, or a weight file."
        )
    stored = checkpoint.read(source)
    network = stored.network()  # which also checks that the weights are complete
    card, architecture = zoo.card(stored.architecture.builder), stored.architecture
    return {
        "path": stored.source,
        "bytes": files.find(source).stat().st_size,
        "network": architecture.builder,
        "title": card.title,
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "max_disparity": architecture.max_disparity,
        "fixed_range": card.fixed_range,
        "regression": architecture.regression,
        "training_heads": architecture.training_heads,
        "hints": dataclasses.asdict(stored.hints),
        "facts": stored.facts,
    }


def _hints_in_words(hints: dict[str, Any]) -> str:
    parts = [f"upscale images narrower than {hints['upscale_to']} pixels"] if hints["upscale_to"] else []
    parts += ["sharpen edges"] if hints["sharpen_edges"] else []
    parts += ["fill the left border"] if hints["fill_border"] else []
    return ", ".join(parts) or "none"


def _table(rows: list[dict[str, Any]], height: int, width: int) -> Table:
    headings = ("M par", "paper", "G MACs", "paper", "total", "3D", "def", "CSA", "mult")
    title = f"Networks for a pair of {height}×{width} and disparities below 192"
    table = new_table(("name",), headings, title)
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
