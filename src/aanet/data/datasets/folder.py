"""Pairs of one's own: a folder, or a CSV file that names them."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from aanet.data.datasets.base import Pair, StereoDataset, one_of, read_mask
from aanet.data.layout import LAYOUTS, Group
from aanet.data.sample import StereoSample
from aanet.errors import AanetError
from aanet.io.images import PathLike

COLUMNS = ("left", "right", "disparity", "mask")


class Folder(StereoDataset):
    """`left/`, `right/` and, where known, `disparity/` and `mask/`, matched by file name.

    Disparities are `.pfm`, `.npy`, `.npz` or 16-bit `.png` (256 times the value).  A mask says more about the
    ground truth: 0 = do not use, 128 = occluded, anything else = visible in both views.

    Args:
        root: The folder; or a CSV file with the columns left, right and optionally disparity and mask, whose
            paths are relative to it.
        split: `all`.
        pseudo_labels: Whether to read pseudo ground truth too.
    """

    SPLITS = ("all",)

    def __init__(self, root: PathLike, split: str = "all", pseudo_labels: bool = False) -> None:
        one_of("folder", split, self.SPLITS, "split")
        path = Path(root)
        self.table = path if path.suffix.lower() == ".csv" else None
        folder = path if self.table is None else path.parent
        super().__init__("folder", folder, split, LAYOUTS["folder"].groups, pseudo_labels)

    @cached_property
    def pairs(self) -> list[Pair]:
        """Every pair of the folder or of the table."""
        return super().pairs if self.table is None else read_table(self.table)

    def __getitem__(self, index: int) -> StereoSample:
        sample = super().__getitem__(index)
        mask_path = self.pairs[index].visible
        if mask_path is not None:
            mask = read_mask(mask_path)
            sample.visible = (mask != 0) & (mask != 128)
            if sample.disparity is not None and sample.valid is not None:
                sample.valid = sample.valid & (mask != 0)
                sample.disparity = sample.disparity * sample.valid
        return sample

    def _pairs_of(self, group: Group) -> Iterable[Pair]:
        """All pairs have ground truth or, without a folder `disparity`, none; masks as they come."""
        has_truth = (self.root / "disparity").is_dir()
        for pair in super()._pairs_of(group):
            has_mask = pair.visible is not None and pair.visible.is_file()
            yield replace(
                pair,
                disparity=pair.disparity if has_truth else None,
                visible=pair.visible if has_mask else None,
            )


def read_table(path: Path) -> list[Pair]:
    """Read a CSV file of pairs; an empty cell means that the file does not exist."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except FileNotFoundError:
        raise AanetError(f"{path} does not exist; expected a CSV file of pairs.") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise AanetError(f"{path} is not a CSV file in UTF-8: {error}.") from error
    if not rows:
        raise AanetError(f"{path} names no pair; expected a header with {', '.join(COLUMNS)} and rows.")
    missing = [column for column in COLUMNS[:2] if column not in rows[0]]
    unknown = [str(column) for column in rows[0] if column not in COLUMNS]
    if missing or unknown:
        got = ", ".join(map(str, rows[0]))
        raise AanetError(
            f"{path}: expected the columns {', '.join(COLUMNS)} (the last two optional); got {got}."
        )
    return [_pair_of_row(path, number, row) for number, row in enumerate(rows, start=2)]


def _pair_of_row(table: Path, number: int, row: dict[str, str | None]) -> Pair:
    files = {column: table.parent / text.strip() for column, text in row.items() if text and text.strip()}
    if "left" not in files or "right" not in files:
        raise AanetError(f"{table}, line {number}: a pair needs a left and a right image.")
    key = Path((row["left"] or "").strip()).with_suffix("")
    key = Path(*key.parts[1:]) if key.is_absolute() else key
    return Pair(
        key=key.as_posix(),
        left=files["left"],
        right=files["right"],
        disparity=files.get("disparity"),
        visible=files.get("mask"),
        objects=None,
        pseudo=table.parent / "disparity_pseudo" / f"{key}.pfm",
    )
