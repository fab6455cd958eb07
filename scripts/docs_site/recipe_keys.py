"""The reference of recipes: every key with its type, default and the comment behind it in the code."""

from __future__ import annotations

import dataclasses
import inspect
import io
import re
import tokenize
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from aanet.training.recipe import Recipe
from aanet.training.schema import Range
from docs_site.markdown import code, escape, table

_NAMES = {int: "whole number", float: "number", str: "text", bool: "true or false"}


class Key(NamedTuple):
    """A key of a recipe."""

    name: str
    kind: str
    default: str
    meaning: str


def tables() -> dict[str, tuple[type, bool]]:
    """The tables of a recipe by name: the dataclass, and whether there may be several."""
    found: dict[str, tuple[type, bool]] = {"": (Recipe, False)}
    _find_tables(Recipe, "", found)
    return found


def _find_tables(cls: type, prefix: str, found: dict[str, tuple[type, bool]]) -> None:
    for name, hint in get_type_hints(cls).items():
        several = get_origin(hint) is tuple
        inner = get_args(hint)[0] if several else hint
        if dataclasses.is_dataclass(inner) and isinstance(inner, type):
            found[f"{prefix}{name}"] = (inner, several)
            _find_tables(inner, f"{prefix}{name}.", found)


def keys(cls: type) -> list[Key]:
    """The keys of a table, without those that are tables."""
    hints, comments = get_type_hints(cls, include_extras=True), comments_of(cls)
    return [
        Key(field.name, _kind(hints[field.name]), _default(field), comments.get(field.name, ""))
        for field in dataclasses.fields(cls)
        if not _is_table(hints[field.name])
    ]


def _is_table(hint: Any) -> bool:
    inner = get_args(hint)[0] if get_origin(hint) is tuple else hint
    return dataclasses.is_dataclass(inner)


def comments_of(cls: type) -> dict[str, str]:
    """The comment of each field: behind it, or in the lines before it."""
    found: dict[str, str] = {}
    pending: list[str] = []
    field = ""
    for token in tokenize.generate_tokens(io.StringIO(inspect.getsource(cls)).readline):
        if token.type == tokenize.COMMENT:
            text = token.string.lstrip("# ")
            if token.line[: token.start[1]].strip():
                found[field] = " ".join([found.get(field, ""), text]).strip()
            else:
                pending.append(text)
        elif match := re.match(r"    (\w+): ", token.line):
            field = match[1]
            if pending:
                found[field] = " ".join(pending)
                pending = []
        elif token.type == tokenize.NAME:
            pending = []
    return found


def _kind(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _kind(next(each for each in arguments if each is not type(None)))
    if origin is Annotated:
        return f"{_kind(arguments[0])}, {_limits(arguments[1])}"
    if origin is Literal:
        return ", ".join(code(f'"{each}"') for each in arguments)
    if origin is tuple:
        inner = _kind(arguments[0])
        count = "" if arguments[-1] is Ellipsis else f" of {len(arguments)}"
        return f"list{count}, each a {inner}"
    if origin is dict:
        return f"table of names, each a {_kind(arguments[1])}"
    return _NAMES[hint]


def _limits(limits: Range) -> str:
    unlimited = limits.high >= Range(0).high
    return f"at least {limits.low:,g}" if unlimited else f"{_number(limits.low)} … {_number(limits.high)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:g}"


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is dataclasses.MISSING:
        return "required"
    return "–" if field.default in (None, "", ()) else code(toml(field.default))


def toml(value: Any) -> str:
    """A default as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _rows(cls: type) -> Iterator[list[str]]:
    for key in keys(cls):
        yield [code(key.name), key.kind, key.default, escape(key.meaning)]


def listing() -> str:
    """A section for each table of a recipe."""
    blocks: list[str] = []
    shown: dict[type, str] = {}
    for name, (cls, several) in tables().items():
        brackets = f"[[{name}]]" if several else f"[{name}]"
        heading = f"## `{brackets}`" if name else "## At the top"
        blocks.append(f"{heading} {{ #{name.replace('.', '-') or 'top'} }}")
        if cls in shown:
            blocks.append(f"The keys are those of [{code(f'[[{shown[cls]}]]')}](#{shown[cls]}).")
            continue
        shown[cls] = name
        blocks.append(escape(" ".join((inspect.getdoc(cls) or "").split())))
        blocks.append(table(["key", "value", "default", "meaning"], _rows(cls)))
    return "\n\n".join(blocks)
