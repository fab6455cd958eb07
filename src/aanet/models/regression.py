"""Aggregated scores → disparity (eq. 7 or its peak), and the confidence from the same distribution."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from aanet.ops.precision import at_least_float32

SHARPENING = 5.0  # how much more the peak counts than in equation 7 when it is looked for


def soft_argmin(scores: Tensor) -> Tensor:
    """Expected candidate under the softmax of the scores (eq. 7); a high score means a good match.

    Args:
        scores: [B, D, H, W].

    Returns:
        [B, H, W], float32 at least, in candidates: pixels of this grid.
    """
    return expected_candidate(torch.softmax(at_least_float32(scores), dim=1))


def peak_argmin(scores: Tensor, reach: int = 2) -> Tensor:
    """Soft argmin over the highest peak of the distribution alone.

    Where two surfaces meet, the distribution has two peaks and equation 7 predicts a disparity between them
    that belongs to neither.  This one takes the higher peak, much as the sub-pixel MAP estimate of Tulyakov
    et al. (NeurIPS 2018), but it is continuous in the scores, so that engines which round differently agree.
    Its gradient moves the peak within the window; only a loss on the scores can teach another peak.

    Args:
        scores: [B, D, H, W].
        reach: Candidates that count on either side of the peak.

    Returns:
        [B, H, W], float32 at least, in candidates: pixels of this grid.
    """
    scores = at_least_float32(scores)
    peak = soft_argmin(SHARPENING * scores.detach())  # lets the highest peak win
    return soft_argmin(scores + _near(scores, peak, reach).log())


def expected_candidate(probability: Tensor) -> Tensor:
    """Sum of d · p(d) over the candidates of [B, D, H, W]."""
    candidates = torch.arange(probability.shape[1], dtype=probability.dtype, device=probability.device)
    # A product and a sum, not a matrix product: autocast would take that to half precision.
    return (probability * candidates.view(-1, 1, 1)).sum(dim=1)


def confidence(scores: Tensor, predicted: Tensor, reach: int = 1) -> Tensor:
    """Probability that the truth lies within `reach` candidates of the predicted one.

    A prediction is only meaningful where the distribution has one peak; this is the share of the probability
    that stands around it, and so falls where matches are ambiguous or spread out.

    Args:
        scores: [B, D, H, W].
        predicted: The disparity that was regressed from them, [B, H, W] in candidates.
        reach: Candidates to count on either side of the prediction.

    Returns:
        [B, H, W] in 0 … 1.
    """
    probability = torch.softmax(at_least_float32(scores), dim=1)
    return (probability * _near(probability, predicted, reach)).sum(dim=1).clamp(0, 1)


def probability_around(scores: Tensor, disparity: Tensor, reach: int) -> Tensor:
    """The probabilities of the 2·reach + 1 candidates around the disparity, [B, 2·reach + 1, H, W].

    Linear between candidates, and so continuous in the disparity; beyond the range the last one is repeated.
    """
    probability = torch.softmax(at_least_float32(scores), dim=1)  # [B, D, H, W]
    lower = disparity.floor()
    steps = torch.arange(-reach, reach + 2, device=scores.device).view(1, -1, 1, 1)
    places = (lower.long().unsqueeze(1) + steps).clamp(0, scores.shape[1] - 1)
    around = probability.gather(1, places)  # [B, 2·reach + 2, H, W]
    return torch.lerp(around[:, :-1], around[:, 1:], (disparity - lower).unsqueeze(1))


def _near(scores: Tensor, disparity: Tensor, reach: int) -> Tensor:
    """A window over the candidates of `scores` around a disparity [B, H, W]: 1 within `reach`, else 0.

    Linear at its edge, so that it is continuous in the disparity.
    """
    candidates = torch.arange(scores.shape[1], dtype=scores.dtype, device=scores.device)
    distance = (candidates.view(1, -1, 1, 1) - disparity.unsqueeze(1)).abs()
    return (reach + 1 - distance).clamp(0, 1)


class SoftArgmin(nn.Module):
    """`soft_argmin` as a part of a network."""

    def forward(self, scores: Tensor) -> Tensor:
        return soft_argmin(scores)


class PeakArgmin(nn.Module):
    """`peak_argmin` as a part of a network."""

    def forward(self, scores: Tensor) -> Tensor:
        return peak_argmin(scores)


REGRESSIONS: dict[str, type[nn.Module]] = {"soft_argmin": SoftArgmin, "peak": PeakArgmin}
