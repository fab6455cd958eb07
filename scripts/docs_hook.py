"""The hook of MkDocs that adds to the site what is generated from the code.

Nothing of it is committed, so that a fact stands once: pages of commands, networks, modules and notebooks,
of the files at the top of the repository, the 3D view, and parts of pages in `docs/` that are marked with
`<!-- generated: NAME -->`.  `make docs` builds the site.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(Path(__file__).parent))

from docs_site import (  # noqa: E402  # the folder of this file is not on the path before
    commands,
    file_formats,
    http_api,
    motorcycle,
    networks,
    notebooks,
    project,
    python_api,
    recipe_keys,
)

VIEWER, STATIC = "assets/viewer", ROOT / "src/aanet/web/static"
# Sections of the navigation that are generated; `mkdocs.yml` has their names.
SECTIONS: dict[str, Callable[[], list[Any]]] = {
    "@commands": commands.navigation,
    "@networks": networks.navigation,
    "@python": python_api.navigation,
}
# Parts of pages in `docs/` that are generated.
PARTS: dict[str, Callable[[], str]] = {
    "commands": commands.listing,
    "choice-of-networks": networks.choices,
    "sizes-of-networks": networks.sizes,
    "python-names": python_api.listing,
    "http-operations": http_api.listing,
    "recipe-keys": recipe_keys.listing,
    "outputs": file_formats.outputs,
    "datasets": file_formats.datasets,
    "submissions": file_formats.submissions,
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the generated sections into the navigation."""
    config.nav = fill(config.nav)
    return config


def fill(entries: Any) -> Any:
    """Replace the names of generated sections by their entries."""
    if isinstance(entries, list):
        return [fill(entry) for entry in entries]
    if isinstance(entries, dict):
        return {title: fill(entry) for title, entry in entries.items()}
    return SECTIONS[entries]() if entries in SECTIONS else entries


def generated_pages() -> dict[str, str]:
    """All pages that have no file in `docs/`, by path."""
    return {**commands.pages(), **networks.pages(), **python_api.pages(), **project.pages(ROOT)}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and files."""
    add: dict[str, str | bytes] = {**generated_pages(), http_api.DOCUMENT: http_api.text()}
    for notebook in sorted(Path(config.docs_dir).glob("notebooks/*.ipynb")):
        text, pictures = notebooks.convert(notebook)
        add[f"notebooks/{notebook.stem}.md"] = text
        add |= {f"notebooks/{name}": content for name, content in pictures.items()}
    add |= motorcycle.cloud_files() | motorcycle.network_pictures()
    # The page of `aanet serve` has the viewer; the site uses the same modules.
    add |= {f"{VIEWER}/{module.name}": module.read_bytes() for module in sorted(STATIC.glob("js/*.js"))}
    add["assets/icon.svg"] = (STATIC / "icon.svg").read_bytes()
    for path, content in add.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Insert generated parts, and lead links to files at the top of the repository to their pages."""
    return project.relink(insert(markdown), "../" * (page.file.src_uri.count("/") + 1))


def insert(markdown: str) -> str:
    """Replace each `<!-- generated: NAME -->` by that part."""
    return re.sub(r"<!-- generated: ([a-z-]+) -->", lambda match: PARTS[match[1]](), markdown)
