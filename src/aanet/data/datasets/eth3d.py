"""ETH3D's low-resolution two-view benchmark: gray images, semi-dense ground truth."""

from __future__ import annotations

from aanet.data.datasets.base import StereoDataset, one_of
from aanet.data.layout import LAYOUTS
from aanet.io.images import PathLike


class Eth3d(StereoDataset):
    """The 27 training or 20 test pairs; extract images and ground truth into the same scene folders."""

    SPLITS = ("train", "test")

    def __init__(self, root: PathLike, split: str = "train", pseudo_labels: bool = False) -> None:
        one_of("eth3d", split, self.SPLITS, "split")
        groups = tuple(group for group in LAYOUTS["eth3d"].groups if group.split == split)
        super().__init__("eth3d", root, split, groups, pseudo_labels)
