"""Finding weight files by name or path, without importing torch.

A prediction with a cached OpenVINO model does not import torch, so finding its weights must not either.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import safetensors

from aanet.errors import ReadError

BUNDLED = Path(__file__).resolve().parent / "bundled"
DEFAULT = "aanet_fast"  # the bundled weights that are used if no model is named


def find(source: str | os.PathLike[str]) -> Path:
    """Return the file for a path or for the name of bundled weights (`aanet`, `aanet:kitti15`)."""
    path = Path(source)
    if path.is_file():
        return path
    bundled = bundled_file(str(source))
    if bundled.is_file():
        return bundled
    known = ", ".join(bundled_names()) or "none yet"
    raise ReadError(f"There is neither a file {source} nor bundled weights of that name (bundled: {known}).")


def bundled_file(name: str) -> Path:
    """Return the path for bundled weights of that name, which may not exist."""
    return BUNDLED / f"{name.replace(':', '-')}.safetensors"


def card_file(name: str) -> Path:
    """Return the path of the model card of bundled weights: training data, accuracy and limits."""
    return bundled_file(name).with_suffix(".md")


def facts(name: str) -> dict[str, Any]:
    """Return the facts about bundled weights (training, accuracy) that their file contains."""
    with safetensors.safe_open(bundled_file(name), framework="numpy") as file:
        known: dict[str, Any] = json.loads((file.metadata() or {})["facts"])
    return known


def bundled_names() -> list[str]:
    """Return the names of the bundled weights, the default first."""
    names = [path.stem.replace("-", ":") for path in BUNDLED.glob("*.safetensors")]
    return sorted(names, key=lambda name: (name != DEFAULT, name))
