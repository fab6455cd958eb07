"""Datasets in their own layouts, one file per family; `aanet.data.layout` says where their files lie."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from aanet.data.datasets.base import Pair, StereoDataset
from aanet.data.datasets.eth3d import Eth3d
from aanet.data.datasets.folder import Folder
from aanet.data.datasets.kitti import Kitti2012, Kitti2015
from aanet.data.datasets.middlebury import Middlebury, Middlebury2006
from aanet.data.datasets.mixed import Mixed, PairSource
from aanet.data.datasets.sceneflow import SceneFlow
from aanet.errors import AanetError
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
    "Pair",
    "PairSource",
    "SceneFlow",
    "StereoDataset",
    "open_dataset",
    "parse_options",
]

DatasetClass = (
    type[SceneFlow]
    | type[Kitti2012]
    | type[Kitti2015]
    | type[Middlebury]
    | type[Middlebury2006]
    | type[Eth3d]
    | type[Folder]
)

DATASETS: dict[str, DatasetClass] = {
    "sceneflow": SceneFlow,
    "kitti2012": Kitti2012,
    "kitti2015": Kitti2015,
    "middlebury": Middlebury,
    "middlebury2006": Middlebury2006,
    "eth3d": Eth3d,
    "folder": Folder,
}


def open_dataset(name: str, root: PathLike, split: str | None = None, **options: Any) -> StereoDataset:
    """Open a dataset by name; the options are those of its class.

    Args:
        name: One of `DATASETS`.
        root: Its folder (for `folder` also a CSV file).
        split: One of the splits it knows; the first of them if not given.
        **options: `render` and `subsets` of sceneflow, `resolution` of middlebury, `scale` of middlebury2006,
            `pseudo_labels` of all.
    """
    if name not in DATASETS:
        raise AanetError(f"There is no dataset {name!r}; known are {', '.join(DATASETS)}.")
    known = [
        option for option in inspect.signature(DATASETS[name]).parameters if option not in ("root", "split")
    ]
    for option in options:
        if option not in known:
            raise AanetError(f"{name} has no option {option!r}; known are {', '.join(known)}.")
    return DATASETS[name](root, split or DATASETS[name].SPLITS[0], **options)


def parse_options(texts: Iterable[str]) -> dict[str, str | float | bool]:
    """Return options given as text (`render=cleanpass`, `scale=4`, `pseudo_labels=true`) with their types."""
    options: dict[str, str | float | bool] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not (name and sign and value):
            raise AanetError(f"An option of a dataset is written name=value; got {text!r}.")
        options[name] = _typed(value)
    return options


def _typed(text: str) -> str | float | bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text)
    except ValueError:
        return text
