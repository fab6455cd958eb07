"""KITTI 2012 and 2015: sparse ground truth from a laser scanner, with and without occluded pixels."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from aanet.data.datasets.base import PairFiles, StereoDataset
from aanet.data.datasets.card import DatasetCard, Protocol, SubmissionFormat
from aanet.data.layout import Group, find

if TYPE_CHECKING:
    from aanet.typing import FloatMap, Mask

SPLITS = ("train", "val", "all", "test")


class Kitti(StereoDataset):
    """The common base of both years: the splits, and ground truth in two files.

    The training pairs are split as in the code of the paper's authors: every fifth frame (000000, 000005, …)
    is for validation, in 2012 the last one (000193) as well, which gives 40 validation pairs in either year
    and 160 (154 in 2012) training pairs. The split of a pair does not depend on which pairs are on disk.

    The ground truth is `disp_occ`, or `disp_noc`, which lacks the occluded pixels, if that file is missing.
    """

    EXTRA_VALIDATION_FRAME: ClassVar[str | None] = None

    def _select_groups(self) -> tuple[Group, ...]:
        stored = "test" if self.split == "test" else "train"
        return tuple(group for group in self.CARD.groups if group.split == stored)

    def _pairs_of(self, group: Group) -> Iterable[PairFiles]:
        for pair in super()._pairs_of(group):
            if self.split in ("all", "test") or self._validates(pair.key) == (self.split == "val"):
                yield pair

    def _validates(self, frame: str) -> bool:
        return frame == self.EXTRA_VALIDATION_FRAME or (frame.isdecimal() and int(frame) % 5 == 0)

    def _read_truth(self, pair: PairFiles) -> tuple[FloatMap | None, Mask | None]:
        from aanet.data.datasets.reading import read_truth

        if pair.disparity and pair.visible and not pair.disparity.is_file() and pair.visible.is_file():
            return read_truth(pair.visible)
        return super()._read_truth(pair)

    def _read_visible(self, path: Path) -> Mask:
        from aanet.data.datasets.reading import read_truth

        return read_truth(path)[1]


class Kitti2015(Kitti):
    """The 200 training pairs of KITTI 2015 (`train` 160, `val` 40, `all` 200) or its 200 test pairs."""

    CARD = DatasetCard(
        name="kitti2015",
        title="KITTI 2015",
        source="https://www.cvlibs.net/datasets/kitti/eval_scene_flow.php?benchmark=stereo",
        groups=(
            Group(
                title="train",
                split="train",
                left="training/image_2/*_10.png",
                right="training/image_3/*_10.png",
                disparity="training/disp_occ_0/*_10.png",
                visible="training/disp_noc_0/*_10.png",
                visible_is_truth=True,
                objects="training/obj_map/*_10.png",
                pseudo="training/disp_pseudo_0/*_10.png",
                complete=200,
            ),
            Group("test", "test", "testing/image_2/*_10.png", "testing/image_3/*_10.png", complete=200),
        ),
        splits=SPLITS,
        protocol=Protocol(
            split="val",
            metrics=("d1_bg", "d1_fg", "d1_all", "d1_noc", "epe", "density"),
            average="pixels",
            description="as in KITTI 2015's development kit: outliers have an error of > 3 px and > 5 %, "
            "counted over the pixels of all images",
        ),
        submission=SubmissionFormat(splits=("test",), disparity="disp_0/{key}_10.png", dense=False),
    )


def _kitti2012_groups(color: str, left: str, right: str) -> tuple[Group, Group]:
    """The training and test pairs of KITTI 2012, in color or in gray."""
    training = Group(
        title=f"train {color}",
        split="train",
        left=f"training/{left}/*_10.png",
        right=f"training/{right}/*_10.png",
        disparity="training/disp_occ/*_10.png",
        visible="training/disp_noc/*_10.png",
        visible_is_truth=True,
        pseudo="training/disp_pseudo/*_10.png",
        complete=194,
    )
    testing = Group(
        title=f"test {color}",
        split="test",
        left=f"testing/{left}/*_10.png",
        right=f"testing/{right}/*_10.png",
        complete=195,
    )
    return training, testing


class Kitti2012(Kitti):
    """The 194 training pairs of KITTI 2012 (`train` 154, `val` 40, `all` 194) or its 195 test pairs.

    The images are in color (`colored_0`) if the color images exist, otherwise in gray (`image_0`).
    """

    CARD = DatasetCard(
        name="kitti2012",
        title="KITTI 2012",
        source="https://www.cvlibs.net/datasets/kitti/eval_stereo_flow.php?benchmark=stereo",
        groups=(
            *_kitti2012_groups("color", "colored_0", "colored_1"),
            *_kitti2012_groups("gray", "image_0", "image_1"),
        ),
        splits=SPLITS,
        protocol=Protocol(
            split="val",
            metrics=("out_noc", "out_all", "avg_noc", "avg_all", "density"),
            average="images",
            description="as in KITTI 2012's development kit: percentage of errors above 3 px and mean error, "
            "averaged over images",
        ),
        submission=SubmissionFormat(splits=("test",), disparity="{key}_10.png", dense=False),
    )
    EXTRA_VALIDATION_FRAME = "000193"

    def _select_groups(self) -> tuple[Group, ...]:
        color, gray = super()._select_groups()
        only_gray = find(self.root, gray.left) and not find(self.root, color.left)
        return (gray if only_gray else color,)
