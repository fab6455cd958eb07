"""The tables that commands print."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

_HEADING = 7  # characters after which headings of numbers are wrapped


def new_table(texts: Sequence[str], numbers: Sequence[str], title: str | None = None) -> Table:
    """An empty table with columns of text, which are folded if need be, and of numbers, which are not."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    for heading in texts:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(textwrap.fill(heading, _HEADING), justify="right", no_wrap=True)
    return table
