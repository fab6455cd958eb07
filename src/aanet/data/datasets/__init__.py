"""Datasets, one module per family. To add one, write a class with a `CARD` and list it in `DATASETS`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from aanet.data.datasets.base import PairFiles, StereoDataset
from aanet.data.datasets.eth3d import Eth3d
from aanet.data.datasets.folder import Folder
from aanet.data.datasets.kitti import Kitti2012, Kitti2015
from aanet.data.datasets.middlebury import Middlebury, Middlebury2006
from aanet.data.datasets.mixed import Mixed, PairSource
from aanet.data.datasets.sceneflow import SceneFlow
from aanet.errors import InputError

if TYPE_CHECKING:
    from aanet.io.images import PathLike

__all__ = [
    "DATASETS",
    "Eth3d",
    "Folder",
    "Kitti2012",
    "Kitti2015",
    "Middlebury",
    "Middlebury2006",
    "Mixed",
    "PairFiles",
    "PairSource",
    "SceneFlow",
    "StereoDataset",
    "dataset_class",
    "open_dataset",
    "parse_options",
]

DATASETS: dict[str, type[StereoDataset]] = {
    dataset.CARD.name: dataset
    for dataset in (SceneFlow, Kitti2012, Kitti2015, Middlebury, Middlebury2006, Eth3d, Folder)
}


def dataset_class(name: str) -> type[StereoDataset]:
    """Return the class of a dataset by name."""
    if name not in DATASETS:
        raise InputError(f"There is no dataset {name!r}; expected one of {', '.join(DATASETS)}.")
    return DATASETS[name]


def open_dataset(name: str, root: PathLike, split: str | None = None, **options: Any) -> StereoDataset:
    """Open a dataset by name.

    Args:
        name: One of `DATASETS`.
        root: Its folder (for `folder`, a CSV file is accepted, too).
        split: One of its splits; the first by default.
        **options: The keyword arguments of its class.
    """
    dataset = dataset_class(name)
    known = [option for option in inspect.signature(dataset).parameters if option not in ("root", "split")]
    for option in options:
        if option not in known:
            raise InputError(f"{name} has no option {option!r}; expected one of {', '.join(known)}.")
    return dataset(root, split, **options)


def parse_options(texts: Iterable[str]) -> dict[str, str | float | bool]:
    """Parse options given as text (`render=cleanpass`, `scale=4`, `pseudo_labels=true`)."""
    options: dict[str, str | float | bool] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not (name and sign and value):
            raise InputError(f"A dataset option must have the form name=value; got {text!r}.")
        options[name] = _parse_value(value)
    return options


def _parse_value(text: str) -> str | float | bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text)
    except ValueError:
        return text
