"""Notebooks as pages: text, code and the outputs that they were saved with."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PICTURES = {"image/png": ".png", "image/jpeg": ".jpg"}


def convert(file: Path) -> tuple[str, dict[str, bytes]]:
    """Return the page of a notebook and the pictures that belong beside it, by name."""
    notebook = json.loads(file.read_text(encoding="utf-8"))
    pictures: dict[str, bytes] = {}
    blocks = []
    for number, cell in enumerate(notebook["cells"]):
        text = "".join(cell["source"]).strip()
        if cell["cell_type"] == "markdown":
            blocks.append(text)
        elif cell["cell_type"] == "code" and text:
            blocks.append(f"```python\n{text}\n```")
            for place, output in enumerate(cell["outputs"]):
                blocks += _output(output, f"{file.stem}-{number}-{place}", pictures)
    note = f"[Download this notebook]({file.name}){{ .md-button download }}"
    title, _, rest = (blocks or [f"# {file.stem}"])[0].partition("\n")
    return "\n\n".join([title, note, rest.strip(), *blocks[1:]]) + "\n", pictures


def _output(output: dict[str, Any], stem: str, pictures: dict[str, bytes]) -> list[str]:
    data = output.get("data", {})
    for media_type, suffix in _PICTURES.items():
        if media_type in data:
            pictures[stem + suffix] = base64.b64decode("".join(data[media_type]))
            return [f"![Output of the cell]({stem}{suffix})"]
    text = "".join(output.get("text", data.get("text/plain", "")))
    text = _ESCAPES.sub("", text).rstrip()
    return [f'```text title="Output"\n{text}\n```'] if text else []
