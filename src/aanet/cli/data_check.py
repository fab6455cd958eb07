"""`aanet data check`: does a folder hold a dataset the way it is expected?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from aanet.data.layout import GroupReport, LayoutReport

NAMES = "sceneflow, kitti2012, kitti2015, middlebury, middlebury2006, eth3d or folder"


def check(
    name: Annotated[str, typer.Argument(help=f"The dataset: {NAMES}.")],
    root: Annotated[Path, typer.Argument(help="The folder it lies in.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Print the tree a dataset is expected in, what was found there and what is missing.

    Exit code 1 if there is no pair, or if a pair lacks its right image or its ground truth.
    """
    import json
    from dataclasses import asdict

    from aanet.data.layout import check_layout

    with Console(stderr=True).status(f"Looking through {root} …"):
        report = check_layout(name, root)
    if as_json:
        facts = asdict(report)
        facts.pop("layout")
        print(json.dumps({**facts, "source": report.layout.source, "usable": report.usable}, indent=2))
    else:
        _print(report, Console())
    if not report.usable:
        raise typer.Exit(1)


def _print(report: LayoutReport, console: Console) -> None:
    table = Table(title=f"{report.layout.title} in {report.root}", title_justify="left", box=None)
    for heading in ("", "what", "expected at", "found"):
        table.add_column(heading, overflow="fold")
    for group in report.groups:
        table.add_section()
        table.add_row("", f"[bold]{group.title}[/bold]", "", _found(group))
        for part in group.parts if group.pairs else group.parts[:3]:
            complete = part.found == group.pairs > 0
            mark = "[green]✓[/green]" if complete else "[red]✗[/red]" if part.needed and group.pairs else "–"
            count = f"{part.found}" if group.pairs else ""
            table.add_row(mark, part.what if part.needed else f"{part.what} (optional)", part.pattern, count)
    console.print(table)
    for group in report.groups:
        for part in group.parts:
            if part.needed and part.missing:
                more = f" and {len(part.missing) - 3} more" if len(part.missing) > 3 else ""
                console.print(f"[red]missing[/red] {', '.join(part.missing[:3])}{more}", highlight=False)
    if not any(group.pairs for group in report.groups):
        console.print(f"No pair was found; the dataset comes from {report.layout.source}", highlight=False)
    elif report.usable:
        console.print(f"[green]Usable:[/green] {sum(group.pairs for group in report.groups)} pairs.")


def _found(group: GroupReport) -> str:
    if not group.pairs:
        return "absent"
    return f"{group.pairs} pairs" if group.complete is None else f"{group.pairs} of {group.complete} pairs"
