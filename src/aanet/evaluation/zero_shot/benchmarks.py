"""The benchmarks of the zero-shot protocol, and how each is scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aanet.data.datasets import StereoDataset, dataset_class, open_dataset
from aanet.data.datasets.card import Protocol
from aanet.errors import InputError, ReadError, did_you_mean


@dataclass(frozen=True)
class Benchmark:
    """The training pairs of one benchmark, and the percentages of wrong pixels that are usual for it.

    Attributes:
        name: In options and in JSON.
        title: In reports.
        dataset: The dataset; also the name of its folder.
        inside: The folder of the training pairs in it.
        protocol: How they are scored.
        headings: Short headings of the metrics.
        options: Other arguments of the dataset.
    """

    name: str
    title: str
    dataset: str
    inside: str
    protocol: Protocol
    headings: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def folder(self) -> str:
        """Where the training pairs are, relative to the folder of all benchmarks."""
        return f"{self.dataset}/{self.inside}"

    @property
    def maps_folder(self) -> str:
        """Where maps of these pairs are in a folder of predictions."""
        return self.folder if self.options else self.dataset

    @property
    def complete(self) -> int:
        """The number of training pairs in a full download."""
        groups = dataset_class(self.dataset).CARD.groups
        counts = [group.complete for group in groups if group.left.startswith(f"{self.inside}/")]
        assert counts[0] is not None
        return counts[0]

    def open(self, root: Path) -> StereoDataset:
        """Open the training pairs; a missing file is an error now rather than after hours of matching."""
        pairs = open_dataset(self.dataset, root / self.dataset, self.protocol.split, **self.options)
        for pair in pairs.pairs:
            truths = [pair.disparity, *([pair.visible] if pairs.groups[0].visible_is_truth else [])]
            if not any(path is not None and path.is_file() for path in truths):
                raise ReadError(f"{self.title}: {pair.key} has no ground truth, {truths[0]} does not exist.")
            if not pair.right.is_file():
                raise ReadError(f"{self.title}: {pair.key} has no right image, {pair.right} does not exist.")
        return pairs


def _kitti(year: int) -> Benchmark:
    words = "D1: an error of > 3 px and > 5 % of the true disparity, over the pixels of all images"
    protocol = Protocol("all", ("d1_all",), "pixels", words)
    return Benchmark(
        f"kitti{year}", f"KITTI {year}", f"kitti{year}", "training", protocol, (f"KITTI {year}",)
    )


def _middlebury(size: str) -> Benchmark:
    words = "bad-2: an error of > 2 px of the images of this size; every scene has the same weight"
    return Benchmark(
        f"middlebury-{size}",
        f"Middlebury {size}",
        "middlebury",
        f"training{size}",
        Protocol("train", ("bad2_noc", "bad2"), "images", words),
        (f"{size} noc", f"{size} all"),
        {"resolution": size},
    )


BENCHMARKS: tuple[Benchmark, ...] = (
    _kitti(2012),
    _kitti(2015),
    *map(_middlebury, "QHF"),
    Benchmark(
        "eth3d",
        "ETH3D",
        "eth3d",
        "two_view_training",
        Protocol(
            "train",
            ("bad1_noc", "bad1"),
            "images",
            "bad-1: an error of > 1 px; every scene has the same weight",
        ),
        ("ETH3D noc", "ETH3D all"),
    ),
)


def chosen(options: Mapping[str, object]) -> tuple[Benchmark, ...]:
    """Return the benchmarks that the option `sets` names, separated by commas; all without it."""
    for option in options:
        if option != "sets":
            raise InputError(
                f"zero-shot has no option {option!r}; expected sets, as in sets=kitti2015,eth3d."
            )
    if "sets" not in options:
        return BENCHMARKS
    known = {each.name: each for each in BENCHMARKS}
    names = [name.strip() for name in str(options["sets"]).split(",")]
    for name in names:
        if name not in known:
            raise InputError(
                f"There is no benchmark {name!r} in zero-shot{did_you_mean(name, known)}; expected "
                f"{', '.join(known)}."
            )
    return tuple(each for each in BENCHMARKS if each.name in names)


def open_present(root: Path, benchmarks: Sequence[Benchmark]) -> dict[Benchmark, StereoDataset]:
    """Open the benchmarks that are in the folder.

    Raises:
        ReadError: If there is none, or if one lacks images or ground truth.
    """
    if not root.is_dir():
        kind = "is a file" if root.exists() else "does not exist"
        raise ReadError(f"The folder {root} {kind}; zero-shot expects there {_folders(benchmarks)}.")
    present = [each for each in benchmarks if (root / each.folder).is_dir()]
    if not present:
        raise ReadError(f"{root} has no benchmark; zero-shot expects there {_folders(benchmarks)}.")
    return {each: each.open(root) for each in present}


def _folders(benchmarks: Iterable[Benchmark]) -> str:
    return ", ".join(each.folder for each in benchmarks)
