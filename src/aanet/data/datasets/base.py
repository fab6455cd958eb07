"""The base class of all datasets: pairs found by file patterns and read on demand.

Modules that load NumPy are imported inside methods: the command line imports every dataset for its help.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from aanet.data.datasets.card import DatasetCard
from aanet.data.layout import Captures, Group, companion, expected, find, require_root
from aanet.errors import InputError, ReadError

if TYPE_CHECKING:
    from aanet.data.sample import StereoSample
    from aanet.io.images import PathLike
    from aanet.typing import FloatMap, Mask


@dataclass(frozen=True)
class PairFiles:
    """The files of one pair; `key` identifies it within its dataset (`000007`, `A/0000/0006`)."""

    key: str
    left: Path
    right: Path
    disparity: Path | None
    visible: Path | None
    objects: Path | None
    pseudo: Path


class StereoDataset:
    """A list of pairs on disk: `len(dataset)`, `dataset[i] -> StereoSample`.

    The files are listed on first use and read one pair at a time. A subclass needs a `CARD`, and overrides
    methods only where its files differ from the common conventions.

    Args:
        root: The dataset's folder.
        split: One of the card's splits; the first by default.
        pseudo_labels: Whether to read pseudo ground truth, too.
    """

    CARD: ClassVar[DatasetCard]

    def __init__(self, root: PathLike, split: str | None = None, *, pseudo_labels: bool = False) -> None:
        self.name = self.CARD.name
        self.root = Path(root)
        self.split = self.one_of(split or self.CARD.splits[0], self.CARD.splits, "split")
        self.groups = self._select_groups()
        self.pseudo_labels = pseudo_labels
        require_root(self.CARD.reference, self.root, self.groups[0])

    @cached_property
    def pairs(self) -> list[PairFiles]:
        """Every pair of the split, sorted by file name; a split without any is an error."""
        found = self.find_pairs()
        if not found:
            raise ReadError(
                f"The split {self.split!r} of {self.CARD.reference} is empty: {self._why_empty()}."
            )
        return found

    def find_pairs(self) -> list[PairFiles]:
        """List the pairs of the split, of which there may be none."""
        return [pair for group in self.groups for pair in self._pairs_of(group)]

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> StereoSample:
        from aanet.data.datasets.reading import read_mask, read_rgb
        from aanet.data.sample import StereoSample

        pair = self.pairs[index]
        disparity, valid = self._read_truth(pair)
        return StereoSample(
            name=f"{self.name} {pair.key}",
            left=read_rgb(pair.left),
            right=read_rgb(pair.right),
            disparity=disparity,
            valid=valid,
            visible=self._read_visible(pair.visible) if pair.visible and pair.visible.is_file() else None,
            foreground=read_mask(pair.objects) > 0 if pair.objects and pair.objects.is_file() else None,
            pseudo_disparity=self._read_pseudo(pair) if self.pseudo_labels else None,
        )

    def pseudo_label_path(self, index: int) -> Path:
        """Return the file of a pair's pseudo ground truth."""
        return self.pairs[index].pseudo

    @classmethod
    def one_of(cls, value: str, known: tuple[str, ...], what: str) -> str:
        """Return the value if it is known, else raise an error that lists the known values."""
        if value not in known:
            raise InputError(f"{cls.CARD.name} has no {what} {value!r}; expected one of {', '.join(known)}.")
        return value

    def _select_groups(self) -> tuple[Group, ...]:
        """Return the groups of the split."""
        return tuple(group for group in self.CARD.groups if group.split == self.split)

    def _pairs_of(self, group: Group) -> Iterable[PairFiles]:
        """Return the pairs of a group; a subclass may filter them by split."""
        for captures, left in find(self.root, group.left):
            yield PairFiles(
                key="/".join(captures),
                left=left,
                right=companion(self.root, group.right, captures),
                disparity=self._optional(group.disparity, captures),
                visible=self._optional(group.visible, captures),
                objects=self._optional(group.objects, captures),
                pseudo=companion(self.root, group.pseudo or "disparity_pseudo/*.pfm", captures),
            )

    def _why_empty(self) -> str:
        return (
            f"no files in {self.root} match {expected(self.groups[0])}; `aanet data check` shows which files "
            "were found"
        )

    def _optional(self, pattern: str | None, captures: Captures) -> Path | None:
        return None if pattern is None else companion(self.root, pattern, captures)

    def _read_truth(self, pair: PairFiles) -> tuple[FloatMap | None, Mask | None]:
        from aanet.data.datasets.reading import read_truth

        return (None, None) if pair.disparity is None else read_truth(pair.disparity)

    def _read_visible(self, path: Path) -> Mask:
        """Read Middlebury's mask, which ETH3D shares: 255 visible in both views, 128 occluded, 0 unknown."""
        from aanet.data.datasets.reading import read_mask

        visible: Mask = read_mask(path) == 255
        return visible

    def _read_pseudo(self, pair: PairFiles) -> FloatMap:
        from aanet.data.datasets.reading import read_truth

        if not pair.pseudo.is_file():
            raise ReadError(
                f"{self.name} {pair.key} has no pseudo ground truth: {pair.pseudo} does not exist "
                "(`aanet pseudo-label` creates it)."
            )
        return read_truth(pair.pseudo)[0]
