"""What all datasets have in common: pairs found by patterns, read when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from aanet.data.layout import Captures, Group, companion, expected, find, require_root
from aanet.data.sample import StereoSample
from aanet.errors import AanetError
from aanet.io.disparity import read_disparity
from aanet.io.images import PathLike, as_rgb8, read_image
from aanet.typing import FloatMap, Image, Mask


@dataclass(frozen=True)
class Pair:
    """The files of one pair; `key` is what distinguishes it within its dataset (`000007`, `A/0000/0006`)."""

    key: str
    left: Path
    right: Path
    disparity: Path | None
    visible: Path | None
    objects: Path | None
    pseudo: Path


class StereoDataset:
    """A list of pairs on disk: `len(dataset)`, `dataset[i] -> StereoSample`.

    The files are listed at the first use and read one pair at a time.
    """

    def __init__(
        self, name: str, root: PathLike, split: str, groups: tuple[Group, ...], pseudo_labels: bool
    ) -> None:
        self.name = name
        self.root = Path(root)
        self.split = split
        self.groups = groups
        self.pseudo_labels = pseudo_labels
        require_root(name, self.root, groups[0])

    @cached_property
    def pairs(self) -> list[Pair]:
        """Every pair of the split, in order of the file names."""
        found = [pair for group in self.groups for pair in self._pairs_of(group)]
        if not found:
            raise AanetError(
                f"The split {self.split!r} of {self.name} is empty: no pair in {self.root} is named "
                f"{expected(self.groups[0])}; `aanet data check` shows what is there."
            )
        return found

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> StereoSample:
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
        """Where the pseudo ground truth of a pair is written to and read from."""
        return self.pairs[index].pseudo

    def _pairs_of(self, group: Group) -> Iterable[Pair]:
        """The pairs of a group; a subclass may leave some out for its split."""
        for captures, left in find(self.root, group.left):
            yield Pair(
                key="/".join(captures),
                left=left,
                right=companion(self.root, group.right, captures),
                disparity=self._optional(group.disparity, captures),
                visible=self._optional(group.visible, captures),
                objects=self._optional(group.objects, captures),
                pseudo=companion(self.root, group.pseudo or "disparity_pseudo/*.pfm", captures),
            )

    def _optional(self, pattern: str | None, captures: Captures) -> Path | None:
        return None if pattern is None else companion(self.root, pattern, captures)

    def _read_truth(self, pair: Pair) -> tuple[FloatMap | None, Mask | None]:
        if pair.disparity is None:
            return None, None
        return known_disparity(read_disparity(pair.disparity))

    def _read_visible(self, path: Path) -> Mask:
        """Middlebury's mask, which ETH3D shares: 255 visible in both views, 128 occluded, 0 unknown."""
        visible: Mask = read_mask(path) == 255
        return visible

    def _read_pseudo(self, pair: Pair) -> FloatMap:
        if not pair.pseudo.is_file():
            raise AanetError(
                f"{self.name} {pair.key} has no pseudo ground truth: {pair.pseudo} does not exist "
                "(`aanet pseudo-label` makes it)."
            )
        return known_disparity(read_disparity(pair.pseudo))[0]


def known_disparity(disparity: FloatMap) -> tuple[FloatMap, Mask]:
    """Return the disparity with 0 where it is unknown, and the mask of where it is known."""
    valid = np.isfinite(disparity) & (disparity > 0)
    return np.where(valid, disparity, np.float32(0)), valid


def read_rgb(path: Path) -> Image:
    """Read an image as uint8 RGB."""
    return as_rgb8(read_image(path))


def read_mask(path: Path) -> Image:
    """Read an 8-bit mask [H, W]; of a colored one the first channel."""
    return read_rgb(path)[:, :, 0]


def one_of(name: str, value: str, known: tuple[str, ...], what: str) -> str:
    """Return the value if the dataset knows it."""
    if value not in known:
        raise AanetError(f"{name} has no {what} {value!r}; known are {', '.join(known)}.")
    return value
