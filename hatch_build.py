"""What the package index shows: the README with absolute addresses, and the links of the project.

Both come from `repository` in `[tool.aanet]` of pyproject.toml. As long as it is empty, the package has no
links, and its description has no pictures and only the text of links to files: relative ones lead nowhere.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE = r"(?![a-z]+:|#|/)[^)\s\"]+"  # neither an address nor an anchor of the same page
_PICTURE = re.compile(rf"!\[([^\]]*)\]\(({_RELATIVE})\)")
_LINK = re.compile(rf"(?<!!)\[([^\]]*)\]\(({_RELATIVE})\)")
_TAG = re.compile(rf"(<(?:img|source)\b[^>]*?\b(?:src|srcset)=\")({_RELATIVE})(\"[^>]*>)")
_BLANK_LINES = re.compile(r"\n{3,}")


class CustomMetadataHook(MetadataHookInterface):
    """Fills in the fields that pyproject.toml declares dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the description and the links."""
        root = Path(self.root)
        settings = tomllib.loads(_read(root / "pyproject.toml"))["tool"]["aanet"]
        repository = settings["repository"].rstrip("/")
        version = re.search(
            r'__version__ = "(.+)"', (root / "src/aanet/version.py").read_text(encoding="utf-8")
        )
        assert version is not None
        text = (root / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": description(text, repository, f"v{version[1]}"),
        }
        metadata["urls"] = links(repository)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def links(repository: str) -> dict[str, str]:
    """Return the links of the project; none without a repository."""
    if not repository:
        return {}
    return {
        "Homepage": repository,
        "Source": repository,
        "Issues": f"{repository}/issues",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
    }


def description(readme: str, repository: str, tag: str) -> str:
    """Return the README for a page outside of the repository; `tag` is the version that its links show."""
    if not repository:
        readme = _TAG.sub("", _PICTURE.sub("", readme))
        readme = _LINK.sub(r"\1", readme)
        return _BLANK_LINES.sub("\n\n", readme)
    readme = _PICTURE.sub(rf"![\1]({repository}/raw/{tag}/\2)", readme)
    readme = _TAG.sub(rf"\1{repository}/raw/{tag}/\2\3", readme)
    return _LINK.sub(rf"[\1]({repository}/blob/{tag}/\2)", readme)
