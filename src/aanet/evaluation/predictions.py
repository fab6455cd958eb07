"""Scores of disparity maps that another program wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from aanet.data.datasets import StereoDataset
from aanet.errors import AanetError, InputError
from aanet.evaluation.evaluate import Evaluation, Observer, PairResult, Prediction, score_map
from aanet.evaluation.map_files import MapFiles
from aanet.evaluation.protocols import protocol_of
from aanet.inference.processing import Processing
from aanet.io.disparity import read_disparity

OTHER_SIGN = 0.95  # share of negative values from which a map has the other sign
_NAMED = 5  # pairs and files that a sentence names
_LISTED = 1000  # files that JSON lists


@dataclass
class MapsOrigin:
    """Maps that were read from files, and what was noticed about them.

    Attributes:
        folder: Where they are.
        total: Number of pairs that were to be scored.
        missing: Pairs without a map.
        unusable: Pairs whose map cannot be scored, with the reason.
        unused: Files that belong to no pair.
        negated: Number of maps with negative disparities, which were negated.
        with_negative: Number of other maps that have some negative values, which count as holes.
        with_holes: Number of maps with unknown pixels: not finite, or 0 in a PNG.
    """

    folder: Path
    total: int
    missing: list[str] = field(default_factory=list)
    unusable: list[tuple[str, str]] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    negated: int = 0
    with_negative: int = 0
    with_holes: int = 0

    def read(self, path: Path, size: tuple[int, int]) -> Prediction:
        """Read a map for images of this size, and note what is particular about it."""
        disparity = read_disparity(path)
        if disparity.shape != size:
            got, wanted = (f"{height}×{width}" for height, width in (disparity.shape, size))
            raise InputError(f"{path} is {got}, and the images are {wanted}; maps are not resized.")
        known = np.isfinite(disparity)
        if not known.any():
            raise InputError(f"{path} has no known disparity.")
        self.with_holes += not known.all()
        negative = disparity < 0
        if negative.sum() > OTHER_SIGN * np.count_nonzero(disparity[known]):
            self.negated += 1
            return Prediction(np.negative(disparity))
        self.with_negative += bool(negative.any())
        return Prediction(disparity)

    def problem(self) -> str | None:
        """Return what is missing or unusable as one sentence."""
        count = len(self.missing) + len(self.unusable)
        if not count:
            return None
        parts = []
        parts += [f"no map of {_some(self.missing)}"] if self.missing else []
        parts += [f"{name}: {reason.rstrip('.')}" for name, reason in self.unusable[:_NAMED]]
        return f"{count} of {self.total} maps in {self.folder} cannot be scored ({'; '.join(parts)})."

    def lines(self, model: str, done: Sequence[Processing]) -> list[tuple[str, str]]:
        """See `Origin`."""
        del done  # nothing is known about it
        scored = self.total - len(self.missing) - len(self.unusable)
        lines = [(model, f"maps in {self.folder}, computed elsewhere; scored {scored} of {self.total} pairs")]
        notes = [
            f"without a map, and not in the averages: {_some(self.missing)}" if self.missing else "",
            f"files that belong to no pair of this split: {_some(self.unused)}" if self.unused else "",
            f"negative disparities in {self.negated} maps, which were negated" if self.negated else "",
            f"some negative values in {self.with_negative} maps: holes" if self.with_negative else "",
            f"not finite, or 0 in a PNG, in {self.with_holes} maps: holes" if self.with_holes else "",
        ]
        lines += [(f"{model}, maps", words) for words in notes if words]
        lines += [(f"{model}, not scored", f"{name}: {reason}") for name, reason in self.unusable[:_NAMED]]
        return lines

    def as_dict(self) -> dict[str, Any]:
        """See `Origin`."""
        return {
            "folder": str(self.folder),
            "missing": self.missing,
            "unusable": [{"name": name, "reason": reason} for name, reason in self.unusable],
            "unused_files": self.unused[:_LISTED],
            "negated_maps": self.negated,
            "maps_with_negative_values": self.with_negative,
            "maps_with_holes": self.with_holes,
        }


def evaluate_predictions(
    maps: MapFiles,
    dataset: StereoDataset,
    *,
    model: str,
    indices: Sequence[int] | None = None,
    strict: bool = False,
    observe: Observer | None = None,
    advance: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Score the maps of a folder; pairs without a usable map are counted and named, and not averaged.

    Args:
        maps: The maps that `find_maps` found.
        dataset: The dataset that they were predicted for.
        model: Name of the program in the result.
        indices: Which pairs; all by default.
        strict: Raise an error if a map is missing or cannot be used.
        observe: As in `evaluate`.
        advance: Called before each pair.
    """
    chosen = range(len(dataset)) if indices is None else indices
    origin = MapsOrigin(maps.folder, len(chosen), unused=maps.unused)
    origin.missing = [dataset.pairs[index].key for index in chosen if index not in maps.of_pairs]
    if strict and origin.missing:
        raise InputError(origin.problem())
    protocol = protocol_of(dataset.name)
    results: list[PairResult] = []
    for index in chosen:
        advance()
        if index not in maps.of_pairs:
            continue
        sample = dataset[index]
        try:
            predicted = origin.read(maps.of_pairs[index], sample.left.shape[:2])
        except AanetError as error:
            if strict:
                raise
            origin.unusable.append((dataset.pairs[index].key, str(error)))
            continue
        scored, dense = score_map(predicted, sample, protocol, seconds=None)
        results.append(scored)
        if observe is not None:
            observe(index, sample, dense)
    if not results:
        raise InputError(origin.problem())
    return Evaluation(
        model=model,
        dataset=dataset.name,
        protocol=protocol,
        pairs=results,
        network=model,
        source=str(maps.folder),
        total=len(chosen),
        origin=origin,
    )


def _some(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
