"""Zip files in the format that the benchmarks' servers take."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aanet.data.datasets import StereoDataset
from aanet.errors import AanetError
from aanet.evaluation.evaluate import Matcher, run_matcher
from aanet.evaluation.metrics import fill_holes
from aanet.io.atomic import atomic_path
from aanet.io.disparity import encode_disparity
from aanet.io.images import PathLike

Advance = Callable[[], None]


@dataclass(frozen=True)
class Format:
    """What a server expects of each pair: its map, and where its running time is told."""

    splits: tuple[str, ...]  # that the zip has to hold
    disparity: str  # name within the zip: {folder}, {key} and {method} are filled in
    time: str | None = None
    time_text: str = "{seconds:.4f}"
    dense: bool = True  # KITTI fills holes itself, by the same rule


FORMATS: dict[str, Format] = {
    "kitti2012": Format(("test",), "{key}_10.png", dense=False),
    "kitti2015": Format(("test",), "disp_0/{key}_10.png", dense=False),
    "middlebury": Format(
        ("train", "test"),
        "{folder}/{key}/disp0{method}.pfm",
        "{folder}/{key}/time{method}.txt",
    ),
    "eth3d": Format(
        ("train", "test"),
        "low_res_two_view/{key}.pfm",
        "low_res_two_view/{key}.txt",
        "runtime {seconds:.4f}",
    ),
}


def format_of(name: str) -> Format:
    """Return the format of a benchmark's server."""
    if name not in FORMATS:
        raise AanetError(f"{name} takes no submissions; these do: {', '.join(FORMATS)}.")
    return FORMATS[name]


def write_submission(
    matcher: Matcher,
    datasets: list[StereoDataset],
    path: PathLike,
    method: str,
    advance: Advance | None = None,
) -> int:
    """Predict every pair of the benchmark's splits and zip the maps; returns how many.

    Args:
        matcher: Called with the left and right image.
        datasets: One for each split of the format, all of one benchmark.
        path: The zip file to write.
        method: The name under which Middlebury will list the files: letters and digits.
        advance: Called after each pair.
    """
    form = format_of(datasets[0].name)
    if not method.isalnum():
        raise AanetError(
            f"The method's name becomes part of file names: letters and digits only; got {method!r}."
        )
    count = 0
    with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for dataset in datasets:
            for index, pair in enumerate(dataset.pairs):
                matched, seconds = run_matcher(matcher, dataset[index])
                names = {"folder": pair.left.parent.parent.name, "key": pair.key, "method": method}
                disparity = fill_holes(matched.disparity)[0] if form.dense else matched.disparity
                name = form.disparity.format(**names)
                known = np.where(disparity >= 0, disparity, np.float32(np.nan))
                archive.writestr(name, encode_disparity(known, Path(name).suffix, name))
                if form.time is not None:
                    archive.writestr(form.time.format(**names), form.time_text.format(seconds=seconds) + "\n")
                count += 1
                if advance is not None:
                    advance()
    return count
