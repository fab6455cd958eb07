"""The user's own pairs: a folder, or a CSV file that lists them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from aanet.data.datasets.base import PairFiles, StereoDataset
from aanet.data.datasets.card import DatasetCard, Protocol
from aanet.data.layout import Group
from aanet.errors import ReadError

if TYPE_CHECKING:
    from aanet.data.sample import StereoSample
    from aanet.io.images import PathLike

OPTIONAL_COLUMNS = ("disparity", "mask")
VAL_LIST = "val.txt"  # in the folder: the names of the pairs for validation
VAL_SHARE = 0.2  # of the pairs, without a list


class Folder(StereoDataset):
    """`left/`, `right/` and, optionally, `disparity/` and `mask/`, matched by file name.

    Disparities are `.pfm`, `.npy`, `.npz` or 16-bit `.png` (256 times the value). A mask qualifies the
    ground truth: 0 = not used, 128 = occluded, anything else = visible in both views.

    The pairs for validation are those that `val.txt` in the folder names, one name (without a suffix) or
    pattern (`office_*`) per line. Without that file they are about a fifth of the pairs, chosen by a hash of
    the name, so that a pair stays in its split when others are added.

    Args:
        root: The folder; or a CSV file with the columns left, right and, optionally, disparity and mask, with
            paths relative to the file.
        split: `all`, `train` or `val`.
        pseudo_labels: Whether to read pseudo ground truth, too.
    """

    CARD = DatasetCard(
        name="folder",
        title="Your own folder",
        source="your own pairs; or a CSV file with the columns left, right, disparity, mask",
        groups=(
            Group(
                title="all",
                split="all",
                left="left/*",
                right="right/*",
                disparity="disparity/*",
                visible="mask/*",
                pseudo="disparity_pseudo/*.pfm",
            ),
        ),
        splits=("all", "train", "val"),
        protocol=Protocol(
            split="all",
            metrics=("epe", "bad1", "bad2", "bad3", "d1_all", "density"),
            average="images",
            description="none: your own pairs",
        ),
    )

    def __init__(self, root: PathLike, split: str | None = None, *, pseudo_labels: bool = False) -> None:
        path = Path(root)
        self.table = path if path.suffix.lower() == ".csv" else None
        super().__init__(path if self.table is None else path.parent, split, pseudo_labels=pseudo_labels)

    def find_pairs(self) -> list[PairFiles]:
        """List the pairs of the folder or of the CSV file that belong to the split."""
        found = super().find_pairs() if self.table is None else read_pairs(self.table)
        if self.split == "all":
            return found
        names = [pair.key for pair in found]
        listed = self.root / VAL_LIST
        held_out = set(_listed(listed, names) if listed.is_file() else _drawn(names))
        return [pair for pair in found if (pair.key in held_out) == (self.split == "val")]

    def _select_groups(self) -> tuple[Group, ...]:
        return self.CARD.groups

    def __getitem__(self, index: int) -> StereoSample:
        from aanet.data.datasets.reading import read_mask

        sample = super().__getitem__(index)
        mask_path = self.pairs[index].visible
        if mask_path is not None:
            mask = read_mask(mask_path)
            sample.visible = (mask != 0) & (mask != 128)
            if sample.disparity is not None and sample.valid is not None:
                sample.valid = sample.valid & (mask != 0)
                sample.disparity = sample.disparity * sample.valid
        return sample

    def _why_empty(self) -> str:
        others = Folder(self.table or self.root).find_pairs()
        if not others:
            return super()._why_empty()
        return f"all {len(others)} pairs are in the other split, which {self.root / VAL_LIST} can change"

    def _pairs_of(self, group: Group) -> Iterable[PairFiles]:
        """With a folder `disparity`, every pair must have ground truth; masks are optional per pair."""
        has_truth = (self.root / "disparity").is_dir()
        for pair in super()._pairs_of(group):
            has_mask = pair.visible is not None and pair.visible.is_file()
            yield replace(
                pair,
                disparity=pair.disparity if has_truth else None,
                visible=pair.visible if has_mask else None,
            )


def _listed(path: Path, names: list[str]) -> Iterator[str]:
    """Return the names that the lines of a file name; a line that names none is an error."""
    from aanet.io.files import MEGABYTE, read_bytes

    text = read_bytes(path, "a list of names", 64 * MEGABYTE).decode("utf-8-sig", errors="replace")
    known = set(names)
    for number, line in enumerate(text.splitlines(), 1):
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        found = [pattern] if pattern in known else [name for name in names if fnmatchcase(name, pattern)]
        if not found:
            raise ReadError(f"{path}, line {number}: no pair is named {pattern[:100]!r}.")
        yield from found


def _drawn(names: list[str]) -> list[str]:
    """Return the names whose hash is small: about a fifth, and of several names neither none nor all."""

    def chance(name: str) -> float:
        return (
            int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()[:8], "big")
            / 2**64
        )

    ordered = sorted(set(names), key=chance)
    below = sum(chance(name) < VAL_SHARE for name in ordered)
    return ordered[: min(max(below, 1), len(ordered) - 1)]


def read_pairs(path: Path) -> list[PairFiles]:
    """Read a CSV file of pairs; an empty cell means that the pair has no such file."""
    from aanet.io.tables import read_table

    return [_pair_of_row(path.parent, row) for row in read_table(path, OPTIONAL_COLUMNS)]


def _pair_of_row(folder: Path, row: dict[str, str]) -> PairFiles:
    files = {column: folder / text for column, text in row.items()}
    key = Path(row["left"]).with_suffix("")
    key = Path(*key.parts[1:]) if key.is_absolute() else key
    return PairFiles(
        key=key.as_posix(),
        left=files["left"],
        right=files["right"],
        disparity=files.get("disparity"),
        visible=files.get("mask"),
        objects=None,
        pseudo=folder / "disparity_pseudo" / f"{key}.pfm",
    )
