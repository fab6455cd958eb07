"""The descriptions of an OpenAPI document, which are a small part of Markdown, as HTML."""

from __future__ import annotations

import re
from html import escape
from textwrap import dedent


def prose(text: str) -> str:
    """Return paragraphs, lists (lines with a dash) and indented code, with `code` inside of them."""
    blocks = re.split(r"\n\s*\n", text.strip("\n"))
    return "".join(_block(block) for block in blocks if block.strip())


def code(text: str) -> str:
    """Return a name as HTML."""
    return f"<code>{escape(text)}</code>"


def _block(block: str) -> str:
    if block.startswith("    "):
        return f"<pre><code>{escape(dedent(block))}</code></pre>"
    if block.startswith("- "):
        items = "".join(f"<li>{_inline(each)}</li>" for each in re.split(r"^- ", block, flags=re.M)[1:])
        return f"<ul>{items}</ul>"
    return f"<p>{_inline(block)}</p>"


def _inline(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(" ".join(text.split())))
