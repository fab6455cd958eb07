"""How each benchmark scores: which pixels, which numbers, which average."""

from __future__ import annotations

from dataclasses import dataclass

from aanet.evaluation.metrics import METRICS, Average


@dataclass(frozen=True)
class Protocol:
    """Everything that has to be said beside a number so that it can be compared."""

    dataset: str
    split: str  # evaluated if no other is asked for
    metrics: tuple[str, ...]  # keys of METRICS, in the order of the table
    average: Average
    maximum: float | None  # px: ground truth at or above it is not scored
    remark: str

    def describe(self) -> list[tuple[str, str]]:
        """Return the protocol in words, to be printed with every result."""
        bound = "every known disparity" if self.maximum is None else f"0 < d < {self.maximum:g} px"
        mean = {
            "images": "over images: each image's mean counts alike",
            "pixels": "over pixels: the pixels of all images are pooled",
        }
        return [
            ("mask", "pixels with ground truth, occluded ones included; noc: those that both cameras see"),
            ("range", bound),
            ("crop", "none: whole images, at the size of the ground truth"),
            (
                "holes",
                "take the smaller disparity of their row neighbors and are scored; density counts them",
            ),
            ("average", mean[self.average]),
            ("benchmark", self.remark),
        ]

    def labels(self) -> list[str]:
        """Return the headings of the table."""
        return [METRICS[metric].label for metric in self.metrics]


PROTOCOLS: dict[str, Protocol] = {
    "sceneflow": Protocol(
        "sceneflow",
        "test",
        ("epe", "bad1", "bad3", "d1_all", "density"),
        "images",
        192.0,
        "as in the paper: FlyingThings3D TEST, disparities below 192 px, mean of the images' means",
    ),
    "kitti2012": Protocol(
        "kitti2012",
        "val",
        ("out_noc", "out_all", "avg_noc", "avg_all", "density"),
        "images",
        None,
        "as KITTI 2012's development kit: percentage above 3 px and mean error, mean of the images' values",
    ),
    "kitti2015": Protocol(
        "kitti2015",
        "val",
        ("d1_bg", "d1_fg", "d1_all", "d1_noc", "epe", "density"),
        "pixels",
        None,
        "as KITTI 2015's development kit: outliers are off by > 3 px and > 5 %, counted over all images",
    ),
    "middlebury": Protocol(
        "middlebury",
        "train",
        ("bad2_noc", "bad2", "bad4", "epe_noc", "epe", "density"),
        "images",
        None,
        "as Middlebury v3, except that thresholds are in pixels of the images given (the server scales to "
        "full size) and that every scene has the same weight",
    ),
    "middlebury2006": Protocol(
        "middlebury2006",
        "all",
        ("bad1_noc", "bad1", "bad2", "epe_noc", "epe", "density"),
        "images",
        None,
        "no official one for these sizes: mean of the scenes' values",
    ),
    "eth3d": Protocol(
        "eth3d",
        "train",
        ("bad1_noc", "bad1", "bad2_noc", "epe_noc", "epe", "density"),
        "images",
        None,
        "as ETH3D's two-view benchmark: percentage above 1 px where both cameras see, mean of the scenes",
    ),
    "folder": Protocol(
        "folder",
        "all",
        ("epe", "bad1", "bad2", "bad3", "d1_all", "density"),
        "images",
        None,
        "none: your own pairs",
    ),
}


def protocol_of(dataset: str) -> Protocol:
    """Return the protocol of a dataset; that of one's own pairs for a name that is no benchmark."""
    return PROTOCOLS.get(dataset, PROTOCOLS["folder"])
