"""Where the files of every dataset lie: the one description that the readers and `aanet data check` share.

A pattern is a path below the dataset's root with `*` for the parts that vary, the same ones in the same order
for all files of a pair: the left image `training/image_2/000007_10.png` has the right image
`training/image_3/000007_10.png`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from aanet.errors import AanetError

Captures = tuple[str, ...]

# A pattern without a suffix (`left/*`) takes a file of any of these.
SUFFIXES = (".png", ".pfm", ".npy", ".npz", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm")


@dataclass(frozen=True)
class Group:
    """Pairs that lie side by side: one pattern for each kind of file."""

    title: str
    split: str  # "train", "test", or "all" where the dataset has none
    left: str
    right: str
    disparity: str | None = None
    visible: str | None = None  # a mask, or a disparity map of the pixels that both cameras see
    visible_is_truth: bool = False  # KITTI: the second map stands in where the first is absent
    objects: str | None = None  # KITTI 2015: 0 = background
    pseudo: str | None = None  # where `aanet pseudo-label` writes
    complete: int | None = None  # pairs in a full download

    def parts(self) -> Iterator[tuple[str, str, bool]]:
        """Yield what the files are, their pattern, and whether the group is useless without them."""
        yield "left images", self.left, True
        yield "right images", self.right, True
        truth = "ground truth (or the next)" if self.visible_is_truth else "ground truth"
        kinds = (
            (truth, self.disparity, True),
            ("visible in both views", self.visible, False),
            ("object map", self.objects, False),
            ("pseudo ground truth", self.pseudo, False),
        )
        for what, pattern, needed in kinds:
            if pattern is not None:
                yield what, pattern, needed


@dataclass(frozen=True)
class Layout:
    """The tree of one dataset and where to get it."""

    title: str
    source: str
    groups: tuple[Group, ...]


def _sceneflow_groups(render: str) -> tuple[Group, ...]:
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


def _kitti2012_group(color: str, left: str, right: str) -> Group:
    return Group(
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


def _scenes(title: str, split: str, folder: str, complete: int) -> Group:
    """Middlebury v3 and ETH3D: a folder for each scene, ground truth for the training scenes."""
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


def _classic_group(title: str, left: str, right: str, disparity: str) -> Group:
    """Middlebury 2001 to 2006: one folder for each scene, names that changed over the years."""
    return Group(
        title=title,
        split="all",
        left=f"*/{left}",
        right=f"*/{right}",
        disparity=f"*/{disparity}",
        visible="*/mask0nocc.png",
        pseudo="disparity_pseudo/*.pfm",
    )


LAYOUTS: dict[str, Layout] = {
    "sceneflow": Layout(
        "Scene Flow (FlyingThings3D, Monkaa, Driving)",
        "https://lmb.informatik.uni-freiburg.de/resources/datasets/SceneFlowDatasets.en.html",
        (*_sceneflow_groups("finalpass"), *_sceneflow_groups("cleanpass")),
    ),
    "kitti2012": Layout(
        "KITTI 2012",
        "https://www.cvlibs.net/datasets/kitti/eval_stereo_flow.php?benchmark=stereo",
        (
            _kitti2012_group("color", "colored_0", "colored_1"),
            _kitti2012_group("gray", "image_0", "image_1"),
            Group(
                "test color",
                "test",
                "testing/colored_0/*_10.png",
                "testing/colored_1/*_10.png",
                complete=195,
            ),
            Group("test gray", "test", "testing/image_0/*_10.png", "testing/image_1/*_10.png", complete=195),
        ),
    ),
    "kitti2015": Layout(
        "KITTI 2015",
        "https://www.cvlibs.net/datasets/kitti/eval_scene_flow.php?benchmark=stereo",
        (
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
    ),
    "middlebury": Layout(
        "Middlebury v3",
        "https://vision.middlebury.edu/stereo/submit3/",
        tuple(
            _scenes(f"{split} {size}", split, f"{folder}{size}", 15)
            for size in "HQF"
            for split, folder in (("train", "training"), ("test", "test"))
        ),
    ),
    "middlebury2006": Layout(
        "Middlebury 2001, 2003, 2005 and 2006",
        "https://vision.middlebury.edu/stereo/data/",
        (
            _classic_group("16-bit", "im0.png", "im1.png", "disp0.png"),
            _classic_group("2005 and 2006", "view1.png", "view5.png", "disp1.png"),
            _classic_group("2001 and 2003", "im2.ppm", "im6.ppm", "disp2.pgm"),
            _classic_group("2003 as PNG", "im2.png", "im6.png", "disp2.png"),
        ),
    ),
    "eth3d": Layout(
        "ETH3D low-resolution two-view",
        "https://www.eth3d.net/datasets#low-res-two-view",
        (
            _scenes("train", "train", "two_view_training", 27),
            _scenes("test", "test", "two_view_test", 20),
        ),
    ),
    "folder": Layout(
        "A folder of one's own",
        "your own pairs; a CSV file with the columns left, right, disparity, mask does as well",
        (
            Group(
                title="all",
                split="all",
                left="left/*",
                right="right/*",
                disparity="disparity/*",
                visible="mask/*",
                pseudo="disparity_pseudo/*.pfm",
            ),
        ),
    ),
}


def find(root: Path, pattern: str) -> list[tuple[Captures, Path]]:
    """Return the files that a pattern matches, in order, with what stood in place of its stars."""
    expression = re.compile(re.escape(pattern).replace(r"\*", "([^/]+)"))
    found = []
    for path in sorted(root.glob(pattern)):
        if path.name.startswith(".") or path.suffix.lower() not in SUFFIXES:
            continue
        relative = path.relative_to(root)
        match = expression.fullmatch(
            (relative if Path(pattern).suffix else relative.with_suffix("")).as_posix()
        )
        if match and path.is_file():
            found.append((match.groups(), path))
    return found


def companion(root: Path, pattern: str, captures: Captures) -> Path:
    """Return the path of the file that belongs to the same pair, whether or not it exists."""
    parts = iter(captures)
    path = root / re.sub(r"\*", lambda _: next(parts), pattern)
    if Path(pattern).suffix:
        return path
    candidates = [path.with_name(path.name + suffix) for suffix in SUFFIXES]
    return next((candidate for candidate in candidates if candidate.is_file()), candidates[0])


def layout_of(name: str) -> Layout:
    """Return the layout of a dataset by name."""
    if name not in LAYOUTS:
        raise AanetError(f"There is no dataset {name!r}; known are {', '.join(LAYOUTS)}.")
    return LAYOUTS[name]


def require_root(name: str, root: Path, group: Group) -> None:
    """Raise if the root is not a folder, naming the tree that belongs there."""
    if not root.is_dir():
        kind = "is a file" if root.exists() else "does not exist"
        raise AanetError(f"The folder {root} {kind}; {name} is expected there as {expected(group)}.")


def expected(group: Group) -> str:
    """Return the needed patterns of a group in one phrase."""
    return ", ".join(pattern for _, pattern, needed in group.parts() if needed)


@dataclass(frozen=True)
class PartReport:
    """How many files of one kind are there, and which the left images ask for in vain."""

    what: str
    pattern: str
    needed: bool
    found: int
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class GroupReport:
    """What was found of a group; a group without a single left image is absent, which is no fault."""

    title: str
    complete: int | None
    parts: list[PartReport]

    @property
    def pairs(self) -> int:
        """How many left images there are."""
        return self.parts[0].found

    @property
    def faulty(self) -> bool:
        """Whether a file is missing that the group cannot do without."""
        return any(part.needed and part.missing for part in self.parts)


@dataclass(frozen=True)
class LayoutReport:
    """The answer of `aanet data check`."""

    name: str
    root: str
    layout: Layout
    groups: list[GroupReport]

    @property
    def usable(self) -> bool:
        """Whether there is at least one pair and every pair has what it needs."""
        return any(group.pairs for group in self.groups) and not any(group.faulty for group in self.groups)


def check_layout(name: str, root: Path) -> LayoutReport:
    """Compare a folder with the tree that a dataset is expected in."""
    layout = layout_of(name)
    require_root(name, root, layout.groups[0])
    return LayoutReport(name, str(root), layout, [_check_group(root, group) for group in layout.groups])


def _check_group(root: Path, group: Group) -> GroupReport:
    captures = [found for found, _ in find(root, group.left)]
    parts = []
    for what, pattern, needed in group.parts():
        stand_in = group.visible if group.visible_is_truth and pattern == group.disparity else None
        missing = [
            companion(root, pattern, found).relative_to(root).as_posix()
            for found in captures
            if not companion(root, pattern, found).is_file()
            and not (stand_in and companion(root, stand_in, found).is_file())
        ]
        parts.append(PartReport(what, pattern, needed, len(captures) - len(missing), missing))
    return GroupReport(group.title, group.complete, parts)
