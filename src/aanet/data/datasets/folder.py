"""The user's own pairs: a folder, or a CSV file that lists them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from aanet.data.datasets.base import PairFiles, StereoDataset
from aanet.data.datasets.card import DatasetCard, Protocol
from aanet.data.layout import Group

if TYPE_CHECKING:
    from aanet.data.sample import StereoSample
    from aanet.io.images import PathLike

OPTIONAL_COLUMNS = ("disparity", "mask")


class Folder(StereoDataset):
    """`left/`, `right/` and, optionally, `disparity/` and `mask/`, matched by file name.

    Disparities are `.pfm`, `.npy`, `.npz` or 16-bit `.png` (256 times the value). A mask qualifies the
    ground truth: 0 = not used, 128 = occluded, anything else = visible in both views.

    Args:
        root: The folder; or a CSV file with the columns left, right and, optionally, disparity and mask, with
            paths relative to the file.
        split: `all`.
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
        splits=("all",),
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

    @cached_property
    def pairs(self) -> list[PairFiles]:
        """Every pair of the folder or of the CSV file."""
        return super().pairs if self.table is None else read_pairs(self.table)

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
