"""ETH3D's low-resolution two-view benchmark: gray images, semi-dense ground truth."""

from __future__ import annotations

from aanet.data.datasets.base import StereoDataset
from aanet.data.datasets.card import DatasetCard, Protocol, SubmissionFormat
from aanet.data.datasets.scenes import scene_folders


class Eth3d(StereoDataset):
    """The 27 training or 20 test pairs; extract images and ground truth into the same scene folders."""

    CARD = DatasetCard(
        name="eth3d",
        title="ETH3D low-resolution two-view",
        source="https://www.eth3d.net/datasets#low-res-two-view",
        groups=(
            scene_folders("train", "train", "two_view_training", 27),
            scene_folders("test", "test", "two_view_test", 20),
        ),
        splits=("train", "test"),
        protocol=Protocol(
            split="train",
            metrics=("bad1_noc", "bad1", "bad2_noc", "epe_noc", "epe", "density"),
            average="images",
            description="as in ETH3D's two-view benchmark: percentage of non-occluded pixels with an error "
            "above 1 px, averaged over scenes",
        ),
        submission=SubmissionFormat(
            splits=("train", "test"),
            disparity="low_res_two_view/{key}.pfm",
            time="low_res_two_view/{key}.txt",
            time_text="runtime {seconds:.4f}",
        ),
    )
