"""Names of the pairs of a list, which begin the names of their output files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple


class Naming(NamedTuple):
    """How the pairs of a list are named: by the shortest part of the left path that tells all of them apart.

    Attributes:
        by: The stem of the left file; its path relative to a folder that is common to all; or the place in
            the list and the stem.
        common: The common folder.
    """

    by: Literal["stem", "path", "place"]
    common: str = ""

    def name(self, place: int, left: str) -> str:
        """The name of the pair at this place of the list."""
        path = Path(left)
        if self.by == "stem":
            return path.stem
        if self.by == "place":
            return f"{place:06d}_{path.stem}"
        return _plain(path).relative_to(self.common).with_suffix("").as_posix()


def naming_of(lefts: Iterable[str]) -> Naming:
    """Find the naming of a list in one pass; of its paths, only digests are kept."""
    stems: set[bytes] = set()
    paths: set[bytes] = set()
    common, count = None, 0
    for left in lefts:
        path = _plain(Path(left))
        count += 1
        stems.add(_digest(Path(left).stem))
        paths.add(_digest(str(path.with_suffix(""))))
        folder = str(path.parent)
        if folder != common:
            try:
                common = folder if common is None else os.path.commonpath([common, folder])
            except ValueError:  # different drives on Windows
                paths.clear()
    if len(stems) == count:
        return Naming("stem")
    # An image may be in several pairs, and two may differ in their suffixes only.
    return Naming("path", common or "") if len(paths) == count else Naming("place")


def _plain(path: Path) -> Path:
    """The path without "..", which would lead out of the output folder."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() follows links


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=12).digest()
