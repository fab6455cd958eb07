"""Plain texts of the code as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_OPTION = re.compile(r"(?<![\w`-])(--[a-z][a-z-]*)")


def escape(text: str) -> str:
    """Make characters of a plain text literal, without those inside backticks."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if number % 2 else re.sub(r"([\\`*_<>\[\]|])", r"\\\1", part)
        for number, part in enumerate(parts)
    )


def prose(text: str) -> str:
    """A help text: literal characters, and options of the command line as code."""
    return _OPTION.sub(r"`\1`", escape(text))


def code(text: object) -> str:
    """A value as code."""
    return f"`{text}`"


def indented(text: str) -> str:
    """A text as the body of a definition or of a list item."""
    return "\n".join(f"    {line}" if line else "" for line in text.splitlines())


def definition(term: str, *paragraphs: str) -> str:
    """An entry of a definition list."""
    body = "\n\n".join(indented(paragraph) for paragraph in paragraphs if paragraph) or "    –"
    return f"{term}\n:{body[1:]}\n"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose columns are aligned to the left."""
    lines = (headings, ["---"] * len(headings), *rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def page(title: str, *blocks: str) -> str:
    """A page of blocks with an empty line between them."""
    return "\n\n".join([f"# {title}", *(block for block in blocks if block)]) + "\n"
