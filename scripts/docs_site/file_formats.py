"""The reference of files: outputs that can be saved, and how datasets are laid out."""

from __future__ import annotations

from aanet.data.datasets import DATASETS
from aanet.outputs import OUTPUTS, VIDEO_SUFFIX
from docs_site.markdown import code, escape, table

_NEEDS = {"camera": "a calibration", "check": "`--check`", None: ""}


def outputs() -> str:
    """A table of all outputs."""
    rows = []
    for name, output in OUTPUTS.items():
        suffixes = [each.suffix for each in output.types] + ([VIDEO_SUFFIX] if output.picture else [])
        shown = ", ".join(map(code, suffixes))
        rows.append([code(name), shown, escape(output.content), _NEEDS[output.needs]])
    return table(["name", "suffixes", "content", "needs"], rows)


def datasets() -> str:
    """A section for each dataset with the patterns of its files."""
    blocks = []
    for name, dataset in DATASETS.items():
        card = dataset.CARD
        splits = ", ".join(map(code, card.splits))
        blocks.append(f"### {escape(card.title)} {{ #{name} }}")
        blocks.append(f"Name: {code(name)}. Splits: {splits}. Source: {escape(card.source)}")
        rows = [
            [escape(group.title), what if required else f"{what}, optional", code(pattern)]
            for group in card.groups
            for what, pattern, required in group.parts()
        ]
        blocks.append(table(["part", "files", "pattern"], rows))
    return "\n\n".join(blocks)


def submissions() -> str:
    """A table of the files that the servers of benchmarks take."""
    rows = []
    for name, dataset in DATASETS.items():
        form = dataset.CARD.submission
        if form is not None:
            files = ", ".join(code(each) for each in (form.disparity, form.time) if each)
            holes = "filled" if form.dense else "left, the server fills them"
            rows.append([code(name), ", ".join(map(code, form.splits)), files, holes])
    return table(["dataset", "splits", "files in the ZIP", "holes"], rows)
