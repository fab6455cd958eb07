"""The specs that come with the package: one TOML file per network, found by its name or by its graph."""

from __future__ import annotations

import functools
from pathlib import Path

from aanet.engines.foreign.graph import Graph, find
from aanet.engines.foreign.spec import Table, read_table

FOLDER = Path(__file__).resolve().parent / "ready_made"


def names() -> list[str]:
    """Return the names of all ready-made specs."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


@functools.cache
def _read(name: str) -> Table:
    return read_table(FOLDER / f"{name}.toml")


def table(name: str) -> Table:
    """Return a ready-made spec, which leaves out what the graph says."""
    return dict(_read(name))


def fitting(graph: Graph) -> list[str]:
    """Return the ready-made specs whose inputs and output the graph has, and no other inputs."""
    return [name for name in names() if _fits(_read(name), graph)]


def _fits(known: Table, graph: Graph) -> bool:
    inputs = [find(graph.inputs, each["name"]) for each in known["input"]]
    if (
        None in inputs
        or len(inputs) != len(graph.inputs)
        or find(graph.outputs, known["output"]["name"]) is None
    ):
        return False
    views = known["input"][0]["content"].count("+") + 1
    channels = views * (1 if known["image"]["color"] == "gray" else 3)
    return all(port is not None and _has_channels(port.shape, channels) for port in inputs)


def _has_channels(shape: tuple[int | None, ...] | None, channels: int) -> bool:
    return shape is None or (len(shape) == 4 and any(shape[axis] in (None, channels) for axis in (1, 3)))
