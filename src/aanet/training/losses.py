"""Losses: equations 8 and 9 of the paper, and cross-entropies of the matching costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
import torch.distributed
import torch.nn.functional as F
from torch import Tensor, nn

from aanet.errors import UnsupportedError
from aanet.ops import resize_disparity

# λ of equation 9 from the coarsest prediction to the finest, by the number of predictions (section 4.1).
PREDICTION_WEIGHTS: dict[int, tuple[float, ...]] = {
    5: (1 / 3, 2 / 3, 1.0, 1.0, 1.0),
    4: (1 / 3, 2 / 3, 1.0, 1.0),
    3: (1.0, 1.0, 1.0),
    1: (1.0,),
}


CLAMP = 10.0  # px: largest loss of a cell of a coarse prediction
COARSE_WEIGHT = 0.5  # of predictions below full size


@dataclass(frozen=True)
class Truth:
    """The ground truth of a batch at full size [B, H, W]; disparities are 0 where unknown."""

    disparity: Tensor  # float32
    visible: Tensor  # bool, False where the left pixel is occluded in the right view
    pseudo: Tensor  # float32, predicted by another network; 0 = none


class DisparityLoss(Protocol):
    """A loss of disparity predictions, ordered coarse to fine."""

    def __call__(self, predictions: list[Tensor], truth: Truth) -> Tensor:
        """Return the loss as a float32 scalar."""


@dataclass(frozen=True)
class PyramidLoss:
    """Equation 9: the weighted sum of every prediction's loss."""

    max_disparity: int

    def __call__(self, predictions: list[Tensor], truth: Truth) -> Tensor:
        """Predictions coarse to fine, each [B, h, w] in pixels of its own grid."""
        if len(predictions) not in PREDICTION_WEIGHTS:
            raise UnsupportedError(
                f"The pyramid loss has weights for {', '.join(map(str, PREDICTION_WEIGHTS))} predictions; "
                f"the network has {len(predictions)}."
            )
        weights = PREDICTION_WEIGHTS[len(predictions)]
        target, supervised = supervision(truth, self.max_disparity)
        losses = [
            weight * prediction_loss(prediction, target, supervised)
            for weight, prediction in zip(weights, predictions, strict=True)
        ]
        return torch.stack(losses).sum()


@dataclass(frozen=True)
class FinestLoss:
    """Equation 8 for the last prediction only, as in the paper's training on a single KITTI set."""

    max_disparity: int

    def __call__(self, predictions: list[Tensor], truth: Truth) -> Tensor:
        """Predictions coarse to fine; only the last one is used."""
        return prediction_loss(predictions[-1], *supervision(truth, self.max_disparity))


def supervision(truth: Truth, max_disparity: int) -> tuple[Tensor, Tensor]:
    """Return the target of equation 8 and its mask: ground truth if known (V(p) = 1), else pseudo truth."""
    known = truth.disparity > 0
    target = torch.where(known, truth.disparity, truth.pseudo)
    return target, (target > 0) & (target < max_disparity)


def prediction_loss(prediction: Tensor, target: Tensor, supervised: Tensor) -> Tensor:
    """Equation 8: smooth L1 of one prediction [B, h, w], resized to full size, over supervised pixels."""
    full = resize_disparity(prediction.float(), (target.shape[1], target.shape[2]))
    return masked_mean(F.smooth_l1_loss(full, target, reduction="none"), supervised)


@dataclass(frozen=True)
class CellLoss:
    """Equation 8 for networks with convex upsampling: each prediction is compared on its own grid.

    A coarse prediction is compared with the ground truth at the centers of its cells: interpolation to full
    size would penalize sharp edges. Its losses are clamped at `CLAMP`: a larger error means a wrong peak,
    which only the loss of the scores can correct. The loss at full size is not clamped: at an edge higher
    than `CLAMP`, a pixel mixed from both surfaces would have no gradient.
    """

    max_disparity: int

    def __call__(self, predictions: list[Tensor], truth: Truth) -> Tensor:
        """Predictions coarse to fine, each [B, h, w] in pixels of its grid; the last one has full size."""
        target, supervised = supervision(truth, self.max_disparity)
        *coarse, full = predictions
        loss = masked_mean(F.smooth_l1_loss(full.float(), target, reduction="none"), supervised)
        joined = Truth(torch.where(supervised, target, 0), truth.visible, truth.pseudo)
        for prediction in coarse:
            cells = sample_truth(joined, prediction.shape[-2], prediction.shape[-1])
            step = target.shape[-1] // prediction.shape[-1]
            loss = loss + COARSE_WEIGHT * clamped_loss(
                prediction.float() * step, cells.disparity * step, cells.known
            )
        return loss


def clamped_loss(prediction: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Smooth L1 over the masked pixels, clamped at `CLAMP`."""
    return masked_mean(F.smooth_l1_loss(prediction, target, reduction="none").clamp(max=CLAMP), mask)


class MatchingLoss(nn.Module):
    """Cross-entropy of raw correlation volumes, times a learned temperature, against the true disparity.

    It trains features to match without any aggregation. The soft target is on the two candidates next to the
    true disparity. Occluded pixels, pixels without ground truth and those whose match is outside the right
    view or the range of candidates are ignored.
    """

    def __init__(self, scales: int, temperature: float = 20.0) -> None:
        super().__init__()
        self.log_temperature = nn.Parameter(torch.full((scales,), temperature).log())

    def forward(self, volumes: list[Tensor], truth: Truth) -> Tensor:
        """Mean over the scales; each volume is [B, D_s, h, w] with one candidate per pixel of its grid."""
        losses = []
        for volume, log_temperature in zip(volumes, self.log_temperature, strict=True):
            cells = sample_truth(truth, volume.shape[-2], volume.shape[-1])
            logits = volume.float() * log_temperature.exp()
            losses.append(candidate_cross_entropy(logits, cells, cells.matchable))
        return torch.stack(losses).mean()


def score_loss(scores: list[Tensor], truth: Truth) -> Tensor:
    """Cross-entropy of the aggregated scores, before their soft argmin, against the true disparity.

    A soft argmin can have the right mean with the probability spread over two surfaces; here all of it has to
    be on the true disparity, which learns faster and keeps edges sharp. Occluded pixels are included:
    aggregation has to fill them from their neighborhood. Mean over the scales; each score is [B, D_s, h, w].
    """
    losses = []
    for score in scores:
        cells = sample_truth(truth, score.shape[-2], score.shape[-1])
        losses.append(candidate_cross_entropy(score.float(), cells, cells.known))
    return torch.stack(losses).mean()


class Cells(NamedTuple):
    """The ground truth on a coarser grid, [B, h, w]: one full-size pixel per cell."""

    disparity: Tensor  # in pixels of the grid
    known: Tensor  # bool
    matchable: Tensor  # bool, known and visible in the right view


def candidate_cross_entropy(logits: Tensor, cells: Cells, mask: Tensor) -> Tensor:
    """Cross-entropy of [B, D, h, w] over the masked cells whose disparity is among the D candidates.

    The target is distributed over the two candidates next to the true disparity such that its mean is exact.
    """
    candidates = logits.shape[1]
    mask = mask & (cells.disparity <= candidates - 1)
    lower = cells.disparity.floor().clamp(0, candidates - 2).long()  # [B, h, w]
    upper_share = (cells.disparity - lower).clamp(0, 1)
    log_probability = logits.log_softmax(dim=1)
    at_lower = log_probability.gather(1, lower[:, None])[:, 0]
    at_upper = log_probability.gather(1, lower[:, None] + 1)[:, 0]
    return masked_mean(-(1 - upper_share) * at_lower - upper_share * at_upper, mask)


def sample_truth(truth: Truth, height: int, width: int) -> Cells:
    """Sample the ground truth at the centers of h × w cells.

    The nearest full-size pixel is used, because an average would lie between two surfaces at edges.
    """
    step_y, step_x = truth.disparity.shape[-2] // height, truth.disparity.shape[-1] // width
    centers = (slice(None), slice(step_y // 2, None, step_y), slice(step_x // 2, None, step_x))
    disparity = truth.disparity[centers] / step_x  # [B, h, w]
    known = disparity > 0
    column = torch.arange(width, device=disparity.device)
    return Cells(disparity, known, known & truth.visible[centers] & (column - disparity >= 0))


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over the masked pixels of the whole batch, 0 if there are none.

    With several processes, every pixel of the joint batch has the same weight: each process divides by the
    mean count, so that the mean of their gradients is the gradient of the joint batch.
    """
    count = mask.sum().to(values.dtype)
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.all_reduce(count)
        count = count / torch.distributed.get_world_size()
    return torch.where(mask, values, values.new_zeros(())).sum() / count.clamp(min=1e-6)
