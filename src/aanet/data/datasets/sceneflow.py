"""Scene Flow: FlyingThings3D, Monkaa and Driving; dense ground truth without occlusion masks."""

from __future__ import annotations

from collections.abc import Sequence

from aanet.data.datasets.base import StereoDataset, one_of
from aanet.data.layout import LAYOUTS, Group, find
from aanet.errors import AanetError
from aanet.io.images import PathLike

SUBSETS = ("FlyingThings3D", "Monkaa", "Driving")


class SceneFlow(StereoDataset):
    """The training pairs of all three subsets (35,454 in full), or the 4,370 of FlyingThings3D's TEST.

    Args:
        root: The folder that holds `FlyingThings3D`, `Monkaa` and `Driving`.
        split: `train` or `test`.
        render: `finalpass`, with motion blur and haze, as in the paper; or `cleanpass`.
        subsets: Which of the three to train on, a list or names joined by commas; those that are there if
            not given.
        pseudo_labels: Whether to read pseudo ground truth too.
    """

    SPLITS = ("train", "test")

    def __init__(
        self,
        root: PathLike,
        split: str = "train",
        render: str = "finalpass",
        subsets: Sequence[str] | str | None = None,
        pseudo_labels: bool = False,
    ) -> None:
        one_of("sceneflow", split, self.SPLITS, "split")
        one_of("sceneflow", render, ("finalpass", "cleanpass"), "rendering")
        names = subsets.split(",") if isinstance(subsets, str) else subsets or SUBSETS
        for name in names:
            one_of("sceneflow", name, SUBSETS, "subset")
        groups = tuple(
            group
            for group in LAYOUTS["sceneflow"].groups
            if group.split == split
            and group.left.startswith(tuple(f"{name}/frames_{render}/" for name in names))
        )
        if not groups:
            raise AanetError("Scene Flow's test split is in FlyingThings3D, which the subsets leave out.")
        super().__init__("sceneflow", root, split, groups, pseudo_labels)
        if subsets is not None:
            self._require(groups)

    def _require(self, groups: tuple[Group, ...]) -> None:
        for group in groups:
            if not find(self.root, group.left):
                raise AanetError(f"{group.title} was asked for, but {self.root} has no {group.left}.")
