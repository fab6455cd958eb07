"""Zip files for the benchmarks' evaluation servers."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from aanet.data.datasets import DATASETS, StereoDataset, dataset_class
from aanet.data.datasets.card import SubmissionFormat
from aanet.errors import AanetError
from aanet.evaluation.evaluate import Matcher, run_matcher
from aanet.evaluation.metrics import fill_holes
from aanet.io.atomic import atomic_path
from aanet.io.disparity import encode_disparity
from aanet.io.images import PathLike

Advance = Callable[[], None]


def submission_format(name: str) -> SubmissionFormat:
    """Return the submission format of a dataset."""
    form = dataset_class(name).CARD.submission
    if form is None:
        known = ", ".join(key for key, dataset in DATASETS.items() if dataset.CARD.submission)
        raise AanetError(f"{name} accepts no submissions; these do: {known}.")
    return form


def write_submission(
    matcher: Matcher,
    datasets: list[StereoDataset],
    path: PathLike,
    method: str,
    advance: Advance | None = None,
) -> int:
    """Predict every pair of the benchmark's splits and zip the disparity maps; returns their number.

    Args:
        matcher: Called with the left and right image.
        datasets: One for each split of the format, all of one benchmark.
        path: The zip file to write.
        method: The method's name in Middlebury's file names: letters and digits.
        advance: Called after each pair.
    """
    form = submission_format(datasets[0].name)
    if not method.isalnum():
        raise AanetError(
            f"The method's name is part of file names and may have letters and digits only; got {method!r}."
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
