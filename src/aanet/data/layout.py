"""File patterns: where the files of a dataset are.

A pattern is a path relative to the dataset's root with `*` for the parts that vary. In all patterns of a
group the stars stand for the same text, which identifies a pair: the left image
`training/image_2/000007_10.png` has the right image `training/image_3/000007_10.png`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from aanet.errors import ReadError

Captures = tuple[str, ...]  # the text that each star of a pattern stands for

# A pattern without a suffix (`left/*`) matches files with any of these.
SUFFIXES = (".png", ".pfm", ".npy", ".npz", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm")


@dataclass(frozen=True)
class Group:
    """Pairs with the same file patterns, one pattern for each kind of file."""

    title: str
    split: str  # "train", "test", or "all" if the dataset has no splits
    left: str
    right: str
    disparity: str | None = None
    visible: str | None = None  # a mask, or a disparity map of the pixels that both cameras see
    visible_is_truth: bool = False  # KITTI: the second map is the ground truth if the first is missing
    objects: str | None = None  # KITTI 2015: 0 = background
    pseudo: str | None = None  # where `aanet pseudo-label` writes
    complete: int | None = None  # number of pairs in a full download

    def parts(self) -> Iterator[tuple[str, str, bool]]:
        """Yield a description, the pattern, and whether the file is required, for each kind of file."""
        yield "left images", self.left, True
        yield "right images", self.right, True
        truth = "ground truth (or the next)" if self.visible_is_truth else "ground truth"
        kinds = (
            (truth, self.disparity, True),
            ("visible in both views", self.visible, False),
            ("object map", self.objects, False),
            ("pseudo ground truth", self.pseudo, False),
        )
        for what, pattern, required in kinds:
            if pattern is not None:
                yield what, pattern, required


def find(root: Path, pattern: str) -> list[tuple[Captures, Path]]:
    """Return the files that match a pattern, sorted by path, with the captures of its stars."""
    expression = re.compile(re.escape(pattern).replace(r"\*", "([^/]+)"))
    found = []
    for path in sorted(root.glob(pattern)):
        relative = path.relative_to(root)
        hidden = any(part.startswith(".") for part in relative.parts)  # half-written files, among others
        if hidden or path.suffix.lower() not in SUFFIXES:
            continue
        match = expression.fullmatch(
            (relative if Path(pattern).suffix else relative.with_suffix("")).as_posix()
        )
        if match and path.is_file():
            found.append((match.groups(), path))
    return found


def companion(root: Path, pattern: str, captures: Captures) -> Path:
    """Return the path of another file of the same pair, whether or not it exists."""
    parts = iter(captures)
    path = root / re.sub(r"\*", lambda _: next(parts), pattern)
    if Path(pattern).suffix:
        return path
    candidates = [path.with_name(path.name + suffix) for suffix in SUFFIXES]
    return next((candidate for candidate in candidates if candidate.is_file()), candidates[0])


def require_root(reference: str, root: Path, group: Group) -> None:
    """Raise an error with the dataset and its expected files if the root is not a folder."""
    if not root.is_dir():
        kind = "is a file" if root.exists() else "does not exist"
        raise ReadError(f"The folder {root} {kind}; {reference} is expected there as {expected(group)}.")


def expected(group: Group) -> str:
    """Return the required patterns of a group, joined by commas."""
    return ", ".join(pattern for _, pattern, required in group.parts() if required)
