"""The reference of the Python API: directives for mkdocstrings, which reads the docstrings."""

from __future__ import annotations

from typing import Any

import aanet
from docs_site.markdown import page

_FOLDER = "reference/python"
# Modules for those who go further than the public names, by page.
MODULES = {
    "evaluation": ["aanet.evaluation.evaluate", "aanet.evaluation.metrics", "aanet.evaluation.predictions"],
    "datasets": ["aanet.data.datasets", "aanet.data.datasets.base", "aanet.data.sample"],
    "synthetic": ["aanet.synthetic.world"],
    "networks": ["aanet.models.network", "aanet.models.zoo.card", "aanet.ops"],
    "training": ["aanet.training.recipe", "aanet.training.losses"],
    "files": ["aanet.io.disparity", "aanet.io.depth", "aanet.io.points", "aanet.io.images", "aanet.io.bags"],
    "cluster": ["aanet.cluster", "aanet.cluster.service"],
    "errors": ["aanet.errors"],
}
_TITLES = {"synthetic": "Synthetic scenes", "networks": "Networks and operators"}


def public() -> dict[str, str]:
    """The public names of the package and where each is defined."""
    return {name: ".".join(aanet._PUBLIC[name]) for name in aanet.__all__ if name in aanet._PUBLIC}


def listing() -> str:
    """A section for each public name."""
    return "\n\n".join(
        _directive(
            target, show_root_heading="true", heading=f"aanet.{name}", toc_label=name, heading_level="2"
        )
        for name, target in public().items()
    )


def pages() -> dict[str, str]:
    """The pages of modules by path."""
    found = {}
    for key, modules in MODULES.items():
        blocks = [f"## `{module}`\n\n{_module(module)}" for module in modules]
        found[f"{_FOLDER}/{key}.md"] = page(_title(key), *blocks)
    return found


def _module(module: str) -> str:
    """The directive of a module, without the public names, which have one place."""
    there = [target.rpartition(".")[2] for target in public().values() if target.rpartition(".")[0] == module]
    filters = ", ".join(f'"!^{name}"' for name in ("_", *(f"{name}$" for name in there)))
    return _directive(module, show_root_toc_entry="false", heading_level="3", filters=f"[{filters}]")


def navigation() -> list[Any]:
    """The entries of the navigation."""
    return [f"{_FOLDER}/index.md", *({_title(key): f"{_FOLDER}/{key}.md"} for key in MODULES)]


def _title(key: str) -> str:
    return _TITLES.get(key, key.capitalize())


def _directive(target: str, **options: str) -> str:
    lines = [f"      {key}: {value}" for key, value in options.items()]
    return "\n".join([f"::: {target}", "    options:", *lines])
