"""Scene Flow: FlyingThings3D, Monkaa and Driving; dense ground truth without occlusion masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aanet.data.datasets.base import StereoDataset
from aanet.data.datasets.card import DatasetCard, Protocol
from aanet.data.layout import Group, find
from aanet.errors import ReadError, UnsupportedError

if TYPE_CHECKING:
    from aanet.io.images import PathLike

SUBSETS = ("FlyingThings3D", "Monkaa", "Driving")


def _groups(render: str) -> tuple[Group, ...]:
    """The three subsets in one rendering pass; the ground truth is the same for both passes."""
    subsets = (
        ("FlyingThings3D", "train", "TRAIN/*/*/", 22390),
        ("FlyingThings3D", "test", "TEST/*/*/", 4370),
        ("Monkaa", "train", "*/", 8664),
        ("Driving", "train", "*/*/*/", 4400),
    )
    return tuple(
        Group(
            title=f"{subset} {split} {render}",
            split=split,
            left=f"{subset}/frames_{render}/{scene}left/*.png",
            right=f"{subset}/frames_{render}/{scene}right/*.png",
            disparity=f"{subset}/disparity/{scene}left/*.pfm",
            pseudo=f"{subset}/disparity_pseudo/{scene}left/*.pfm",
            complete=complete,
        )
        for subset, split, scene, complete in subsets
    )


class SceneFlow(StereoDataset):
    """The training pairs of all three subsets (35,454 in full), or the 4,370 of FlyingThings3D's TEST.

    Args:
        root: The folder with `FlyingThings3D`, `Monkaa` and `Driving`.
        split: `train` or `test`.
        render: `finalpass`, with motion blur and haze, as in the paper; or `cleanpass`.
        subsets: Which of the three to use, a list or names joined by commas; by default, those that are on
            disk.
        pseudo_labels: Whether to read pseudo ground truth, too.
    """

    CARD = DatasetCard(
        name="sceneflow",
        title="Scene Flow (FlyingThings3D, Monkaa, Driving)",
        source="https://lmb.informatik.uni-freiburg.de/resources/datasets/SceneFlowDatasets.en.html",
        groups=(*_groups("finalpass"), *_groups("cleanpass")),
        splits=("train", "test"),
        protocol=Protocol(
            split="test",
            metrics=("epe", "bad1", "bad3", "d1_all", "density"),
            average="images",
            description="as in the paper: FlyingThings3D TEST, disparities below 192 px, mean over images",
            max_disparity=192.0,
        ),
    )

    def __init__(
        self,
        root: PathLike,
        split: str | None = None,
        *,
        render: str = "finalpass",
        subsets: Sequence[str] | str | None = None,
        pseudo_labels: bool = False,
    ) -> None:
        self.render = self.one_of(render, ("finalpass", "cleanpass"), "rendering")
        names = subsets.split(",") if isinstance(subsets, str) else subsets or SUBSETS
        self.subsets = [self.one_of(name, SUBSETS, "subset") for name in names]
        super().__init__(root, split, pseudo_labels=pseudo_labels)
        if subsets is not None:
            self._require_subsets()

    def _select_groups(self) -> tuple[Group, ...]:
        folders = tuple(f"{name}/frames_{self.render}/" for name in self.subsets)
        groups = tuple(group for group in super()._select_groups() if group.left.startswith(folders))
        if not groups:
            raise UnsupportedError(
                "Scene Flow's test split is in FlyingThings3D, which `subsets` does not contain."
            )
        return groups

    def _require_subsets(self) -> None:
        for group in self.groups:
            if not find(self.root, group.left):
                raise ReadError(f"{group.title} was requested, but {self.root} has no {group.left}.")
