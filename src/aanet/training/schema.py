"""Convert parsed TOML to typed dataclasses; errors name the key."""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from aanet.errors import InputError

T = TypeVar("T")


@dataclass(frozen=True)
class Range:
    """The smallest and the largest value of a number."""

    low: float
    high: float = 1e9


Count = Annotated[int, Range(0)]
Positive = Annotated[int, Range(1)]
Amount = Annotated[float, Range(0)]
Share = Annotated[float, Range(0, 1)]


def build(cls: type[T], table: Mapping[str, Any], where: str) -> T:
    """Make an instance of the dataclass `cls` from a table; `where` names the table in errors."""
    hints = get_type_hints(cls, include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]  # any dataclass
    for key in table:
        if key not in fields:
            raise InputError(f"{where} has an unknown key {shown(key)}; {closest(key, list(fields))}.")
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in table:
            raise InputError(f"{where}: the key {name!r} is missing.")
    values = {key: coerce(value, hints[key], f"{where}: {shown(key)}") for key, value in table.items()}
    return cls(**values)


def closest(word: str, known: list[str]) -> str:
    """Return a hint for an unknown word: the most similar known word, or all of them."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}" if near else f"expected one of {', '.join(sorted(known))}"


def shown(value: Any) -> str:
    """Return a value as Python writes it, in at most 60 characters."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or with thousands of digits
        text = f"a very long {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]} …"


def coerce(value: Any, hint: Any, where: str) -> Any:
    """Convert `value` to the annotated type, or raise an error that names the expected type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):  # an optional value: TOML has no null
        (hint,) = (argument for argument in arguments if argument is not type(None))
        return coerce(value, hint, where)
    if origin is Annotated:
        return _within(coerce(value, arguments[0], where), arguments[1], where)
    if origin is Literal:
        if value not in arguments:
            allowed = ", ".join(repr(argument) for argument in arguments)
            raise InputError(f"{where} must be one of {allowed}; it is {shown(value)}.")
        return value
    if origin is tuple:
        return _coerce_tuple(value, arguments, where)
    is_spec = dataclasses.is_dataclass(hint) and isinstance(hint, type)
    if (origin is dict or is_spec) and not isinstance(value, Mapping):
        raise InputError(f"{where} must be a table; it is {shown(value)}.")
    if origin is dict:
        return {key: coerce(item, arguments[1], f"{where}, {shown(key)}") for key, item in value.items()}
    if is_spec:
        return build(hint, value, where)
    if hint is float and type(value) is int:
        value = float(value) if abs(value) < _LARGEST else math.inf
    if type(value) in (int, float) and not abs(value) < _LARGEST:
        raise InputError(f"{where} must be a finite number; it is {shown(value)}.")
    if type(value) is not hint:
        raise InputError(f"{where} must be {_NAMES[hint]}; it is {shown(value)}.")
    return value


_LARGEST = 2**53  # whole numbers up to here are exact as floats
_NAMES = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}


def _within(value: float, limits: Range, where: str) -> float:
    if not limits.low <= value <= limits.high:
        raise InputError(f"{where} must be from {limits.low:g} to {limits.high:g}; it is {shown(value)}.")
    return value


def _coerce_tuple(value: Any, arguments: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise InputError(f"{where} must be a list; it is {shown(value)}.")
    if arguments[-1] is Ellipsis:
        return tuple(coerce(item, arguments[0], f"{where}, entry {i}") for i, item in enumerate(value))
    if len(value) != len(arguments):
        raise InputError(f"{where} must have {len(arguments)} entries; it has {len(value)}.")
    return tuple(
        coerce(item, hint, f"{where}, entry {i}")
        for i, (item, hint) in enumerate(zip(value, arguments, strict=True))
    )
