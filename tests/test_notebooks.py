"""The notebooks of docs/notebooks run without an error, and are kept with their outputs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from helpers.scripts import load_script

NOTEBOOKS = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
LARGEST_BYTES = 500_000
# What would take longest, by notebook.
SMALLER = {"predict_and_measure": {}, "train_and_look_inside": {"STEPS = 40": "STEPS = 2"}}


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def kinds(cell: Any) -> set[str]:
    """What a cell shows: "image" and "text"."""
    return {
        kind.partition("/")[0] for output in cell.outputs for kind in output.get("data", {"text/plain": ""})
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALLER)
def test_a_notebook_runs_and_shows_what_it_is_kept_with(name: str) -> None:
    kept = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    executed = load_script("run_notebooks").execute(NOTEBOOKS / f"{name}.ipynb", SMALLER[name])
    assert [kinds(cell) for cell in code_cells(executed)] == [kinds(cell) for cell in code_cells(kept)]


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_kept_whole_small_and_without_traces_of_a_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text) < LARGEST_BYTES
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert sum("image" in kinds(cell) for cell in cells) >= 5
    streams = [output for cell in cells for output in cell.outputs if output.output_type == "stream"]
    assert [output for output in streams if output.name == "stderr"] == []
    printed = "".join(output.text for output in streams)
    assert not re.search(r"(/home/|/tmp/|/root/|C:\\)", printed)


def test_every_notebook_is_run() -> None:
    assert set(SMALLER) == {path.stem for path in NOTEBOOKS.glob("*.ipynb")}
