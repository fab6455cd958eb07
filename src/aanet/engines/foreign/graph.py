"""The inputs and outputs of a network, as its file states them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

Shape = tuple[int | None, ...] | None  # None for a side of any length; None as a whole for any rank


@dataclass(frozen=True)
class Port:
    """An input or output.

    Attributes:
        name: Its name; the shortest, if there are several.
        names: All names under which a spec may call it.
        shape: Its sides.
        type: Its element type as NumPy spells it, such as "float32".
    """

    name: str
    names: tuple[str, ...]
    shape: Shape
    type: str

    def takes(self, shape: tuple[int, ...]) -> bool:
        """Whether an array of this shape fits."""
        if self.shape is None:
            return True
        sides = zip(self.shape, shape, strict=False)
        return len(shape) == len(self.shape) and all(side in (None, given) for side, given in sides)

    @property
    def shown(self) -> str:
        """The name, type and shape for people."""
        sides = (
            "any shape"
            if self.shape is None
            else " × ".join("?" if n is None else str(n) for n in self.shape)
        )
        return f"{self.name}: {self.type} [{sides}]"


@dataclass(frozen=True)
class Graph:
    """What is known of a network without running it."""

    format: str
    producer: str
    opset: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    parameters: int | None
    engine: str  # the name of the engine that opened it
    runs_on: str  # its description

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Graph:
        """Undo `dataclasses.asdict`, also after JSON."""
        ports = {key: tuple(_port(each) for each in values[key]) for key in ("inputs", "outputs")}
        return cls(**{**values, **ports})

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as JSON has them."""
        return asdict(self)


def find(ports: tuple[Port, ...], name: str) -> Port | None:
    """Return the port of a name; TensorFlow's ":0" may be left out."""
    wanted = name.removesuffix(":0")
    for port in ports:
        if wanted in (each.removesuffix(":0") for each in port.names):
            return port
    return None


def _port(values: Mapping[str, Any]) -> Port:
    shape = values["shape"]
    return Port(
        values["name"], tuple(values["names"]), None if shape is None else tuple(shape), values["type"]
    )
