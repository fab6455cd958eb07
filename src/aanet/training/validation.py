"""Validation of a network on held-out pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aanet.data.datasets import PairSource
from aanet.data.sample import StereoSample
from aanet.engines.torch import TorchEngine
from aanet.errors import InputError
from aanet.evaluation.metrics import ErrorSums, average, error_sums
from aanet.inference.hints import InferenceHints
from aanet.matcher import StereoMatcher
from aanet.models.network import StereoNetwork

STATISTICS: dict[str, Callable[[ErrorSums], float]] = {
    "EPE": lambda sums: sums.epe,
    "bad-2": lambda sums: sums.bad(2.0),
    "bad-3": lambda sums: sums.bad(3.0),
    "D1": lambda sums: sums.d1,
}


@dataclass(frozen=True)
class ValidationSet:
    """A dataset and the name under which its scores are reported."""

    name: str
    source: PairSource
    limit: int  # use only the first pairs; 0 = all


def validate(
    network: StereoNetwork, sets: list[ValidationSet], hints: InferenceHints | None = None
) -> dict[str, dict[str, float]]:
    """Return EPE and percentages of bad pixels over all pixels with ground truth, averaged over pairs."""
    device = str(next(network.parameters()).device)
    matcher = StereoMatcher.with_engine(TorchEngine(network, device, hints=hints))  # as users run it
    scores: dict[str, dict[str, float]] = {}
    for each in sets:
        count = min(each.limit or len(each.source), len(each.source))
        errors = [score(matcher, each.source[i]) for i in range(count)]
        scores[each.name] = {
            name: average(errors, statistic, over="images") for name, statistic in STATISTICS.items()
        }
    return scores


def score(matcher: StereoMatcher, sample: StereoSample) -> ErrorSums:
    """Return the errors of one pair over all pixels with ground truth."""
    if sample.disparity is None:
        raise InputError(f"{sample.name} has no ground truth to validate on.")
    known = sample.disparity > 0 if sample.valid is None else sample.valid
    disparity = matcher(sample.left, sample.right, inspect=False).disparity
    return error_sums(disparity, sample.disparity, known, given=np.ones_like(known))
