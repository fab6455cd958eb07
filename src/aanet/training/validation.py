"""Scores on pairs that are never trained on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from aanet.data.datasets import PairSource
from aanet.data.sample import FloatMap, StereoSample
from aanet.errors import AanetError
from aanet.evaluation.metrics import ErrorSums, average, error_sums
from aanet.models import normalise
from aanet.models.network import StereoNetwork

STATISTICS: dict[str, Callable[[ErrorSums], float]] = {
    "EPE": lambda sums: sums.epe,
    "bad-2": lambda sums: sums.bad(2.0),
    "bad-3": lambda sums: sums.bad(3.0),
    "D1": lambda sums: sums.d1,
}


@dataclass(frozen=True)
class ValidationSet:
    """A dataset under the name that its scores are reported by."""

    name: str
    source: PairSource
    limit: int  # the first so many pairs; 0 = all


def validate(network: StereoNetwork, sets: list[ValidationSet]) -> dict[str, dict[str, float]]:
    """EPE and percentages of bad pixels, over all pixels with truth, averaged over the pairs of a set."""
    scores: dict[str, dict[str, float]] = {}
    for each in sets:
        count = min(each.limit or len(each.source), len(each.source))
        errors = [score(network, each.source[i]) for i in range(count)]
        scores[each.name] = {
            name: average(errors, statistic, over="images") for name, statistic in STATISTICS.items()
        }
    return scores


def score(network: StereoNetwork, sample: StereoSample) -> ErrorSums:
    """The errors of one pair over all pixels with truth."""
    if sample.disparity is None:
        raise AanetError(f"{sample.name} has no ground truth to validate on.")
    known = sample.disparity > 0 if sample.valid is None else sample.valid
    return error_sums(predict(network, sample), sample.disparity, known, given=np.ones_like(known))


@torch.inference_mode()
def predict(network: StereoNetwork, sample: StereoSample) -> FloatMap:
    """The disparity [H, W] of a pair of any size: padded at the top and right, predicted, cropped."""
    device = next(network.parameters()).device
    height, width = sample.left.shape[:2]
    multiple, smallest = network.size_multiple, network.minimum_size
    top = padded_length(height, multiple, smallest) - height
    right = padded_length(width, multiple, smallest) - width

    def prepare(image: np.ndarray) -> Tensor:
        tensor = torch.from_numpy(image).to(device).permute(2, 0, 1)[None].float() / 255
        return F.pad(normalise(tensor), (0, right, top, 0), mode="replicate")

    disparity = network.eval()(prepare(sample.left), prepare(sample.right)).disparity
    return np.asarray(disparity[0, top:, :width].float().cpu())


def padded_length(length: int, multiple: int, smallest: int) -> int:
    """The next length that the network accepts."""
    return -(-max(length, smallest) // multiple) * multiple
