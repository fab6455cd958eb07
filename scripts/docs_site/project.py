"""Files at the top of the repository that are pages of the site too."""

from __future__ import annotations

import re
from pathlib import Path

PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
# Where links to files outside of `docs/` lead on the site.
_ELSEWHERE = {"README.md": "index.md", "README.md#networks": "networks/index.md", **PAGES}
_LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")

# Links to notebooks lead to their pages, apart from those with attributes, which download the file.
_NOTEBOOK = re.compile(r"(?<=\]\()([^)\s:]+)\.ipynb\)(?!\{)")


def pages(root: Path) -> dict[str, str]:
    """These files as pages by path, with links relative to `docs/`."""
    return {
        target: relink((root / source).read_text(encoding="utf-8"), "") for source, target in PAGES.items()
    }


def relink(text: str, prefix: str) -> str:
    """Rewrite links that are right in the repository to pages of the site.

    Args:
        text: A page.
        prefix: What leads from its links to the root of the repository: `../` for pages in `docs/`.
    """

    def replace(match: re.Match[str]) -> str:
        link, anchor = match[1], match[2] or ""
        if "://" in link or not link.startswith(prefix):
            return match[0]
        path = link.removeprefix(prefix)
        if path in _ELSEWHERE:
            # The sections of the README are not those of the start page.
            page = _ELSEWHERE.get(path + anchor, _ELSEWHERE[path])
            return prefix.removeprefix("../") + page + (anchor if path in PAGES else "")
        return f"{path.removeprefix('docs/')}{anchor}" if not prefix else match[0]

    return _NOTEBOOK.sub(r"\1.md)", _LINK.sub(replace, text))
