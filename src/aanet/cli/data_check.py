"""`aanet data check`: check the files of a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.markup import escape

from aanet.cli.console import status
from aanet.cli.options import Dataset, JsonOutput, Root

if TYPE_CHECKING:
    from aanet.data.layout_check import GroupReport, LayoutReport, PartReport


def check(
    dataset: Dataset,
    root: Root,
    as_json: JsonOutput = False,
) -> None:
    """List the files that a dataset should have, and those that are missing.

    The exit code is 1 if there are no pairs, or if a pair lacks its right image or its ground truth.

    Example: aanet data check kitti2015 data/kitti2015
    """
    import json
    from dataclasses import asdict

    from aanet.data.layout_check import check_layout

    with status(f"Checking {root}"):
        report = check_layout(dataset, root)
    if as_json:
        facts = {
            "dataset": report.card.name,
            "root": report.root,
            "groups": [asdict(group) for group in report.groups],
            "splits": report.splits,
            "source": report.card.source,
            "usable": report.usable,
        }
        print(json.dumps(facts, indent=2))
    else:
        _print(report, Console())
    if not report.usable:
        raise typer.Exit(1)


def _print(report: LayoutReport, console: Console) -> None:
    def say(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True)

    say(f"{report.card.title}, expected in {escape(report.root)}")
    width = max(len(part.pattern) for group in report.groups for part in group.parts)
    for group in report.groups:
        say(f"\n[bold]{group.title}[/bold]: {_found(group)}")
        for part in group.parts:
            what = part.what if part.required else f"{part.what} (optional)"
            say(f"  {_mark(group, part)} {part.pattern:{width}} {part.found or '–':>6}  {what}")
    counts = [f"{split} {count}" for split, count in report.splits.items() if count]
    say(f"\nPairs of each split: {', '.join(counts)}" if counts else "")
    for group in report.groups:
        for part in group.parts:
            if part.required and part.missing:
                more = f" and {len(part.missing) - 3} more" if len(part.missing) > 3 else ""
                say(f"[red]Missing:[/red] {escape(', '.join(part.missing[:3]))}{more}")
    if not any(group.pairs for group in report.groups):
        say(f"No pairs were found; the dataset is available from {report.card.source}")
    elif report.usable:
        say("[green]Usable:[/green] every pair found has its required files.")


def _mark(group: GroupReport, part: PartReport) -> str:
    if group.pairs and not part.missing:
        return "[green]✓[/green]"
    return "[red]✗[/red]" if group.pairs and part.required else " "


def _found(group: GroupReport) -> str:
    if not group.pairs:
        return "absent"
    return f"{group.pairs} pairs" if group.complete is None else f"{group.pairs} of {group.complete} pairs"
