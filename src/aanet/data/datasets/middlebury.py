"""Middlebury v3 (the benchmark) and the scenes of 2001, 2003, 2005 and 2006."""

from __future__ import annotations

import numpy as np

from aanet.data.datasets.base import Pair, StereoDataset, known_disparity, one_of
from aanet.data.layout import LAYOUTS
from aanet.errors import AanetError
from aanet.io.disparity import read_disparity
from aanet.io.images import PathLike, read_image
from aanet.typing import FloatMap, Mask


class Middlebury(StereoDataset):
    """The 15 training or 15 test scenes of Middlebury v3.

    Args:
        root: The folder that holds `trainingH` and `testH` (or F, Q).
        split: `train` or `test`.
        resolution: `F` full, `H` half, `Q` quarter.
        pseudo_labels: Whether to read pseudo ground truth too.
    """

    SPLITS = ("train", "test")

    def __init__(
        self, root: PathLike, split: str = "train", resolution: str = "H", pseudo_labels: bool = False
    ) -> None:
        one_of("middlebury", split, self.SPLITS, "split")
        one_of("middlebury", resolution, ("F", "H", "Q"), "resolution")
        groups = {group.title: group for group in LAYOUTS["middlebury"].groups}
        super().__init__("middlebury", root, split, (groups[f"{split} {resolution}"],), pseudo_labels)
        self.resolution = resolution


class Middlebury2006(StereoDataset):
    """The older scenes, a folder each, in any of the namings they were published in.

    16-bit maps (`disp0.png`) hold 256 times the disparity.  The 8-bit ones hold a multiple of it that only
    the image size tells: 2001 (about 430×380) 8; 2003 (450×375, 900×750, 1800×1500) 4, 2, 1; 2005 and 2006
    (370, 555 or 1110 rows) 3, 2, 1.  `scale` overrides that.
    """

    SPLITS = ("all",)

    def __init__(
        self, root: PathLike, split: str = "all", scale: float | None = None, pseudo_labels: bool = False
    ) -> None:
        one_of("middlebury2006", split, self.SPLITS, "split")
        super().__init__("middlebury2006", root, split, LAYOUTS["middlebury2006"].groups, pseudo_labels)
        if scale is not None and not (isinstance(scale, int | float) and scale > 0):
            raise AanetError(f"The scale of 8-bit disparities is a positive number; got {scale!r}.")
        self.scale = scale

    def _read_truth(self, pair: Pair) -> tuple[FloatMap | None, Mask | None]:
        assert pair.disparity is not None  # every group of the layout has ground truth
        if pair.disparity.name == "disp0.png":
            return known_disparity(read_disparity(pair.disparity, scale=self.scale))
        stored = read_image(pair.disparity)
        if stored.ndim == 3:  # some of 2003 are gray pictures stored in three equal channels
            stored = stored[:, :, 0]
        scale = self.scale or _published_scale(pair, stored.shape[0], stored.shape[1])
        return known_disparity((stored / scale).astype(np.float32))


def _published_scale(pair: Pair, height: int, width: int) -> float:
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
    raise AanetError(
        f"{pair.disparity} is {height}×{width}, which is no published size, so the scale of its 8-bit "
        "disparities is unknown; give it as `scale`."
    )
