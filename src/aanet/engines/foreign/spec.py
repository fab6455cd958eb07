"""How a foreign network is fed and read: what its file does not say, as a small TOML table.

A foreign network is one that this package did not export. `ForeignSpec` describes it completely; a table may
leave out what follows from the graph or can be found by trying (see `recognition`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from aanet.errors import ReadError, did_you_mean
from aanet.inference.spec import MAX_DISPARITY
from aanet.io.files import read_bytes
from aanet.io.toml import TomlError, loads

Content = Literal["left", "right", "left+right", "right+left"]
Layout = Literal["NCHW", "NHWC"]
Color = Literal["RGB", "BGR", "gray"]
Sign = Literal["positive", "negative"]
Unit = Literal["pixel", "width"]
Table = dict[str, Any]

DEFAULT_MAX_DISPARITY = 192  # of a network that states none
_MAX_BYTES = 100_000
_MAX_TEXT = 2000
_MAX_INPUTS = 8
_MAX_SIDE = 65536


@dataclass(frozen=True)
class InputSpec:
    """An input of the network.

    Attributes:
        name: Its name in the graph.
        content: The image, or both of them stacked along the channels, in this order.
        scale: Size of the image that it takes, relative to the others: 0.5 for a copy of half the size.
    """

    name: str
    content: Content
    scale: float = 1.0


@dataclass(frozen=True)
class ImageSpec:
    """The numbers that stand for the pixels: (range of 0 … 1, minus `mean`, divided by `std`)."""

    layout: Layout
    color: Color
    range: tuple[float, float] = (0.0, 1.0)
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()


@dataclass(frozen=True)
class SizeSpec:
    """The image sizes: multiples of a number, at least a minimum, or one fixed height and width."""

    multiple: int = 1
    minimum: int = 1
    height: int | None = None
    width: int | None = None

    @property
    def fixed(self) -> tuple[int, int] | None:
        """Height and width of the only size that the network takes, or None."""
        return None if self.height is None or self.width is None else (self.height, self.width)


@dataclass(frozen=True)
class OutputSpec:
    """The map to read.

    Attributes:
        name: Its name in the graph.
        channel: The channel, of those besides height and width.
        sign: "negative" if the network computes −d, as networks for optical flow do.
        scale: Factor by which the numbers are multiplied to get disparities in pixels of the input image.
        unit: "pixel", or "width" for fractions of the width of the input image.
        resolution: Height and width of the map, relative to the image: 0.25 for a quarter.
    """

    name: str
    channel: int = 0
    sign: Sign = "positive"
    scale: float = 1.0
    unit: Unit = "pixel"
    resolution: float = 1.0


@dataclass(frozen=True)
class ForeignSpec:
    """Everything that is needed to run a foreign network; see the attributes' classes.

    Attributes:
        name: What the network is called in reports.
        inputs: Its inputs, in any order.
        image: The numbers that stand for the pixels.
        size: The image sizes that it takes.
        output: The map to read.
        max_disparity: Largest disparity in pixels that it can find; None if unknown.
        title: Its name for people.
        license: The license of its weights, or "".
        source: Where it comes from, or "".
        verified: Which file was run with this spec, and the result; "" if none was.
        note: What else a user should know.
    """

    name: str
    inputs: tuple[InputSpec, ...]
    image: ImageSpec
    size: SizeSpec
    output: OutputSpec
    max_disparity: int | None = None
    title: str = ""
    license: str = ""
    source: str = ""
    verified: str = ""
    note: str = ""

    def to_table(self) -> Table:
        """Return the table that `from_table` reads."""
        facts = ("name", "title", "max_disparity", "license", "source", "verified", "note")
        return {
            **{key: getattr(self, key) for key in facts if getattr(self, key) not in (None, "")},
            "input": [_as_table(each) for each in self.inputs],
            "image": _as_table(self.image),
            "size": _as_table(self.size),
            "output": _as_table(self.output),
        }

    @classmethod
    def from_table(cls, table: Mapping[str, Any], origin: str) -> ForeignSpec:
        """Read a complete table; error messages call it `origin`."""
        check_table(table, origin)
        try:
            return cls(
                inputs=tuple(InputSpec(**each) for each in table["input"]),
                image=ImageSpec(**{key: _as_tuple(value) for key, value in table["image"].items()}),
                size=SizeSpec(**table.get("size", {})),
                output=OutputSpec(**table["output"]),
                **{key: value for key, value in table.items() if key not in _TABLES},
            )
        except (KeyError, TypeError) as error:
            raise ReadError(f"{origin} is not a complete network spec: {error} is missing.") from error

    def to_toml(self) -> str:
        """Return the spec as TOML."""
        table, lines = self.to_table(), []
        for key, value in table.items():
            if key not in _TABLES:
                lines.append(f"{key} = {_toml_value(value)}")
        for each in table["input"]:
            lines += ["", "[[input]]", *_toml_lines(each)]
        for key in ("image", "size", "output"):
            lines += ["", f"[{key}]", *_toml_lines(table[key])]
        return "\n".join(lines) + "\n"


def read_table(path: Path) -> Table:
    """Read and check a TOML file, which may be incomplete."""
    content = read_bytes(path, "a network spec", _MAX_BYTES)
    try:
        table = loads(content.decode("utf-8-sig"))
    except (TomlError, UnicodeDecodeError) as error:
        raise ReadError(f"{path} is not valid TOML: {' '.join(str(error).split())[:200]}.") from error
    check_table(table, str(path))
    return table


_TABLES = {"input": InputSpec, "image": ImageSpec, "size": SizeSpec, "output": OutputSpec}
_CHOICES: dict[str, tuple[str, ...]] = {
    "content": get_args(Content),
    "layout": get_args(Layout),
    "color": get_args(Color),
    "sign": get_args(Sign),
    "unit": get_args(Unit),
}
_WHOLE = {
    "max_disparity": (1, MAX_DISPARITY),
    "multiple": (1, 1024),
    "minimum": (1, 8192),
    "height": (1, _MAX_SIDE),
    "width": (1, _MAX_SIDE),
    "channel": (0, 4096),
}
_POSITIVE = {"scale": (1e-6, 1e6), "resolution": (1 / 64, 4.0)}


def check_table(table: Mapping[str, Any], origin: str) -> None:
    """Raise an error for an unknown key or a wrong value; keys may be missing."""
    known = {field.name for field in fields(ForeignSpec)} - {"inputs"} | {"input"}
    _check_keys(table, known, origin, "")
    for key, value in table.items():
        if key == "input":
            if not isinstance(value, list) or not 1 <= len(value) <= _MAX_INPUTS:
                raise ReadError(f"{origin}: [[input]] must stand 1 to {_MAX_INPUTS} times.")
            for each in value:
                _check_part(each, InputSpec, origin, "input")
        elif key in _TABLES:
            _check_part(value, _TABLES[key], origin, key)
        else:
            _check_value(key, value, origin, key)
    size = table.get("size", {})
    if ("height" in size) != ("width" in size):
        raise ReadError(f"{origin}: a fixed size needs both size.height and size.width.")
    images = [len(table.get("image", {}).get(key, ())) for key in ("mean", "std")]
    if any(count not in (0, 1, 3) for count in images):
        raise ReadError(f"{origin}: image.mean and image.std have one number, or one per color.")


def _check_part(value: Any, kind: type, origin: str, where: str) -> None:
    if not isinstance(value, dict):
        raise ReadError(f"{origin}: {where} must be a table.")
    _check_keys(value, {field.name for field in fields(kind)}, origin, f"{where}.")
    for key, each in value.items():
        _check_value(key, each, origin, f"{where}.{key}")


def _check_keys(table: Mapping[str, Any], known: set[str], origin: str, where: str) -> None:
    for key in table:
        if key not in known:
            raise ReadError(f"{origin} has an unknown key {(where + key)[:60]!r}{did_you_mean(key, known)}.")


def _check_value(key: str, value: Any, origin: str, where: str) -> None:
    """Raise an error unless the value has the type and the bounds of its key."""
    if key in _CHOICES:
        valid, wanted = value in _CHOICES[key], " or ".join(_CHOICES[key])
    elif key in _WHOLE:
        least, most = _WHOLE[key]
        valid = type(value) is int and least <= value <= most
        wanted = f"a whole number from {least} to {most}"
    elif key in _POSITIVE:
        low, high = _POSITIVE[key]
        valid, wanted = _is_number(value) and low <= value <= high, f"a number from {low:g} to {high:g}"
    elif key == "range":
        valid = _are_numbers(value) and len(value) == 2 and value[0] != value[1]
        wanted = "two different numbers, such as [0, 255]"
    elif key in ("mean", "std"):
        valid = _are_numbers(value) and (key == "mean" or all(each > 0 for each in value))
        wanted = "a list of numbers" if key == "mean" else "a list of positive numbers"
    else:
        valid = isinstance(value, str) and len(value) <= _MAX_TEXT and value.isprintable()
        valid = valid and (key != "name" or 0 < len(value) <= 200)
        wanted = "a short text in one line"
    if not valid:
        raise ReadError(f"{origin}: {where} must be {wanted}; it is {str(value)[:60]!r}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _are_numbers(values: Any) -> bool:
    return isinstance(values, list | tuple) and all(_is_number(each) and abs(each) < 1e6 for each in values)


def _as_table(part: object) -> Table:
    """Return a part as a table, without what is unset."""
    values = {field.name: getattr(part, field.name) for field in fields(part)}  # type: ignore[arg-type]
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in values.items()
        if value is not None and value != ()
    }


def _as_tuple(value: Any) -> Any:
    return tuple(float(each) for each in value) if isinstance(value, list) else value


def _toml_lines(table: Table) -> list[str]:
    return [f"{key} = {_toml_value(value)}" for key, value in table.items()]


def _toml_value(value: Any) -> str:
    """Return a text, a number or a list of numbers; the texts of a spec have no control characters."""
    return json.dumps(value, ensure_ascii=False)
