"""The layout that Middlebury v3 and ETH3D share: one folder per scene."""

from __future__ import annotations

from aanet.data.layout import Group


def scene_folders(title: str, split: str, folder: str, complete: int) -> Group:
    """Return the files of a folder of scenes; only the training scenes have ground truth."""
    truth = split == "train"
    return Group(
        title=title,
        split=split,
        left=f"{folder}/*/im0.png",
        right=f"{folder}/*/im1.png",
        disparity=f"{folder}/*/disp0GT.pfm" if truth else None,
        visible=f"{folder}/*/mask0nocc.png" if truth else None,
        pseudo=f"disparity_pseudo/{folder}/*.pfm",
        complete=complete,
    )
