"""The manifest of a run: everything needed to reproduce it."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import sys
from pathlib import Path
from typing import Any

import torch

from aanet.io.atomic import atomic_path
from aanet.training.recipe import Recipe
from aanet.version import __version__

PACKAGES = ("torch", "numpy", "opencv-python-headless", "lightning", "scikit-image")


def describe_run(recipe: Recipe, data: list[dict[str, Any]]) -> dict[str, Any]:
    """Return versions, machine, seed, recipe and data of a run."""
    return {
        "aanet": __version__,
        "python": sys.version.split()[0],
        "packages": {name: _version(name) for name in PACKAGES},
        "machine": {
            "system": platform.system(),
            "processor": platform.processor() or platform.machine(),
            "threads": torch.get_num_threads(),
            "vector_instructions": torch.backends.cpu.get_cpu_capability(),
        },
        "seed": recipe.seed,
        "recipe_digest": recipe.digest(),
        "recipe": recipe.as_dict(),
        "data": data,
    }


def write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest as JSON."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
