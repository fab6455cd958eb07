"""KITTI 2012 and 2015: sparse ground truth from a laser scanner, with and without occluded pixels."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from aanet.data.datasets.base import Pair, StereoDataset, known_disparity, one_of
from aanet.data.layout import LAYOUTS, Group, find
from aanet.io.disparity import read_disparity
from aanet.io.images import PathLike
from aanet.typing import FloatMap, Mask


class Kitti(StereoDataset):
    """What the two years share: the splits, and ground truth in two files.

    The training pairs are split as the paper's authors split them: every fifth frame (000000, 000005, …)
    is for validation, in 2012 the last one (000193) as well, which leaves 40 validation pairs in either year
    and 160 (154 in 2012) to train on.  A pair belongs to the same split however many are on disk.

    The ground truth is `disp_occ`; where that file is absent, `disp_noc`, which lacks the occluded pixels.
    """

    SPLITS = ("train", "val", "all", "test")
    EXTRA_VALIDATION_FRAME: str | None = None

    def _pairs_of(self, group: Group) -> Iterable[Pair]:
        for pair in super()._pairs_of(group):
            if self.split in ("all", "test") or self._validates(pair.key) == (self.split == "val"):
                yield pair

    def _validates(self, frame: str) -> bool:
        return frame == self.EXTRA_VALIDATION_FRAME or (frame.isdecimal() and int(frame) % 5 == 0)

    def _read_truth(self, pair: Pair) -> tuple[FloatMap | None, Mask | None]:
        if pair.disparity and pair.visible and not pair.disparity.is_file() and pair.visible.is_file():
            return known_disparity(read_disparity(pair.visible))
        return super()._read_truth(pair)

    def _read_visible(self, path: Path) -> Mask:
        return known_disparity(read_disparity(path))[1]


class Kitti2015(Kitti):
    """The 200 training pairs of KITTI 2015 (`train` 160, `val` 40, `all` 200) or its 200 test pairs."""

    def __init__(self, root: PathLike, split: str = "train", pseudo_labels: bool = False) -> None:
        one_of("kitti2015", split, self.SPLITS, "split")
        training, testing = LAYOUTS["kitti2015"].groups
        super().__init__("kitti2015", root, split, (testing if split == "test" else training,), pseudo_labels)


class Kitti2012(Kitti):
    """The 194 training pairs of KITTI 2012 (`train` 154, `val` 40, `all` 194) or its 195 test pairs.

    In color (`colored_0`) if that is there, else in gray (`image_0`).
    """

    EXTRA_VALIDATION_FRAME = "000193"

    def __init__(self, root: PathLike, split: str = "train", pseudo_labels: bool = False) -> None:
        one_of("kitti2012", split, self.SPLITS, "split")
        wanted = "test" if split == "test" else "train"
        color, gray = (group for group in LAYOUTS["kitti2012"].groups if group.split == wanted)
        group = color if find(Path(root), color.left) or not find(Path(root), gray.left) else gray
        super().__init__("kitti2012", root, split, (group,), pseudo_labels)
