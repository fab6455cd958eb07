"""Middlebury v3 (the benchmark) and the scenes of 2001, 2003, 2005 and 2006."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aanet.data.datasets.base import PairFiles, StereoDataset
from aanet.data.datasets.card import DatasetCard, Protocol, SubmissionFormat
from aanet.data.datasets.scenes import scene_folders
from aanet.data.layout import Group
from aanet.errors import InputError

if TYPE_CHECKING:
    from aanet.io.images import PathLike
    from aanet.typing import FloatMap, Mask


class Middlebury(StereoDataset):
    """The 15 training or 15 test scenes of Middlebury v3.

    Args:
        root: The folder with `trainingH` and `testH` (or F, Q).
        split: `train` or `test`.
        resolution: `F` full, `H` half, `Q` quarter.
        pseudo_labels: Whether to read pseudo ground truth, too.
    """

    CARD = DatasetCard(
        name="middlebury",
        title="Middlebury v3",
        source="https://vision.middlebury.edu/stereo/submit3/",
        groups=tuple(
            scene_folders(f"{split} {size}", split, f"{folder}{size}", 15)
            for size in "HQF"
            for split, folder in (("train", "training"), ("test", "test"))
        ),
        splits=("train", "test"),
        protocol=Protocol(
            split="train",
            metrics=("bad2_noc", "bad2", "bad4", "epe_noc", "epe", "density"),
            average="images",
            description="as in Middlebury v3, except that thresholds are in pixels of the given images (the "
            "server uses full-size pixels) and that every scene has the same weight",
        ),
        submission=SubmissionFormat(
            splits=("train", "test"),
            disparity="{folder}/{key}/disp0{method}.pfm",
            time="{folder}/{key}/time{method}.txt",
        ),
    )

    def __init__(
        self,
        root: PathLike,
        split: str | None = None,
        *,
        resolution: str = "H",
        pseudo_labels: bool = False,
    ) -> None:
        self.resolution = self.one_of(resolution, ("F", "H", "Q"), "resolution")
        super().__init__(root, split, pseudo_labels=pseudo_labels)

    def _select_groups(self) -> tuple[Group, ...]:
        return tuple(group for group in self.CARD.groups if group.title == f"{self.split} {self.resolution}")


def _scene_files(title: str, left: str, right: str, disparity: str) -> Group:
    """One folder per scene; the file names changed over the years."""
    return Group(
        title=title,
        split="all",
        left=f"*/{left}",
        right=f"*/{right}",
        disparity=f"*/{disparity}",
        visible="*/mask0nocc.png",
        pseudo="disparity_pseudo/*.pfm",
    )


class Middlebury2006(StereoDataset):
    """The older scenes, one folder each, with any of the file names they were published with.

    16-bit maps (`disp0.png`) store 256 times the disparity.  8-bit maps store a multiple of it that follows
    from the image size: 2001 (about 430×380) 8; 2003 (450×375, 900×750, 1800×1500) 4, 2, 1; 2005 and 2006
    (370, 555 or 1110 rows) 3, 2, 1.  `scale` overrides that.
    """

    CARD = DatasetCard(
        name="middlebury2006",
        title="Middlebury 2001, 2003, 2005 and 2006",
        source="https://vision.middlebury.edu/stereo/data/",
        groups=(
            _scene_files("16-bit", "im0.png", "im1.png", "disp0.png"),
            _scene_files("2005 and 2006", "view1.png", "view5.png", "disp1.png"),
            _scene_files("2001 and 2003", "im2.ppm", "im6.ppm", "disp2.pgm"),
            _scene_files("2003 as PNG", "im2.png", "im6.png", "disp2.png"),
        ),
        splits=("all",),
        protocol=Protocol(
            split="all",
            metrics=("bad1_noc", "bad1", "bad2", "epe_noc", "epe", "density"),
            average="images",
            description="no official protocol for these sizes: averaged over scenes",
        ),
    )

    def __init__(
        self,
        root: PathLike,
        split: str | None = None,
        *,
        scale: float | None = None,
        pseudo_labels: bool = False,
    ) -> None:
        super().__init__(root, split, pseudo_labels=pseudo_labels)
        if scale is not None and not (isinstance(scale, int | float) and scale > 0):
            raise InputError(f"The scale of 8-bit disparities must be a positive number; got {scale!r}.")
        self.scale = scale

    def _read_truth(self, pair: PairFiles) -> tuple[FloatMap | None, Mask | None]:
        import numpy as np

        from aanet.data.datasets.reading import read_truth, split_known
        from aanet.io.images import read_image

        assert pair.disparity is not None  # every group has ground truth
        if pair.disparity.name == "disp0.png":
            return read_truth(pair.disparity, self.scale)
        stored = read_image(pair.disparity)
        if stored.ndim == 3:  # some maps of 2003 are stored with three equal channels
            stored = stored[:, :, 0]
        scale = self.scale or _published_scale(pair, stored.shape[0], stored.shape[1])
        return split_known((stored / scale).astype(np.float32))


def _published_scale(pair: PairFiles, height: int, width: int) -> float:
    if pair.left.name == "view1.png":
        scales = {1110: 1.0, 555: 2.0, 370: 3.0}
        if height in scales:
            return scales[height]
    else:
        scales = {1500: 1.0, 750: 2.0, 375: 4.0}
        if width * 5 == height * 6 and height in scales:
            return scales[height]
        if 370 < height < 390:
            return 8.0
    raise InputError(
        f"{pair.disparity} is {height}×{width}, which is not a published size, so the scale of its 8-bit "
        "disparities is unknown; give it with the option `scale`."
    )
