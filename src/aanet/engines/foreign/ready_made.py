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


def fitting(graph: Graph) -> tuple[Table, str] | None:
    """Return the ready-made spec whose inputs and output the graph has, and its name.

    Several that feed and read a network alike are one, without the facts in which they differ.
    """
    found = [name for name in names() if _fits(_read(name), graph)]
    if not found:
        return None
    common = dict(_read(found[0]))
    for other in map(_read, found[1:]):
        if any(common.get(key) != other.get(key) for key in ("input", "image", "size", "output")):
            return None
        common = {key: value for key, value in common.items() if other.get(key) == value}
    return common, " and ".join(found)


def _fits(known: Table, graph: Graph) -> bool:
    if "input" not in known or "name" not in known["output"]:
        return False  # files of this network have no names of their own
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
    """Whether a shape has these channels in either layout, or leaves them open."""
    if shape is None:
        return True
    stated = [side for side in (shape[1], shape[3]) if side is not None] if len(shape) == 4 else [0]
    return not stated or channels in stated
