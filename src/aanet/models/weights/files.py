"""Where weights lie: from a name or a path to a file, without loading torch.

A prediction whose network was converted before needs no torch at all, so finding its file must not either.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import safetensors

from aanet.errors import AanetError

BUNDLED = Path(__file__).resolve().parent / "bundled"


def find(source: str | os.PathLike[str]) -> Path:
    """Return the file that a bundled name (`aanet`, `aanet:kitti15`) or a path means."""
    path = Path(source)
    if path.is_file():
        return path
    bundled = bundled_file(str(source))
    if bundled.is_file():
        return bundled
    known = ", ".join(bundled_names()) or "none yet"
    raise AanetError(
        f"There is no weights file {source}, nor bundled weights of that name (bundled: {known})."
    )


def bundled_file(name: str) -> Path:
    """Return where the bundled weights of that name would lie."""
    return BUNDLED / f"{name.replace(':', '-')}.safetensors"


def card_file(name: str) -> Path:
    """Return where the card of bundled weights lies: what they were trained on, their scores and limits."""
    return bundled_file(name).with_suffix(".md")


def facts(name: str) -> dict[str, Any]:
    """Return what is known of bundled weights, as their file says."""
    with safetensors.safe_open(bundled_file(name), framework="numpy") as file:
        known: dict[str, Any] = json.loads((file.metadata() or {})["facts"])
    return known


def bundled_names() -> list[str]:
    """The names of the weights that come with the package."""
    return sorted(path.stem.replace("-", ":") for path in BUNDLED.glob("*.safetensors"))
