"""Aggregated scores → disparity (eq. 7, or over the highest peak only), and confidence."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from aanet.ops.precision import at_least_float32

SHARPENING = 5.0  # factor of the scores when the highest peak is located
NEARLY_ZERO = 1e-30  # a weight without influence; on a CPU the logarithm of zero takes 60 times as long


def soft_argmin(scores: Tensor) -> Tensor:
    """Expected candidate under the softmax of the scores (eq. 7); a high score means a good match.

    Args:
        scores: [B, D, H, W].

    Returns:
        [B, H, W], at least float32, in candidates, which are pixels of this grid.
    """
    return expected_candidate(torch.softmax(at_least_float32(scores), dim=1))


def peak_argmin(scores: Tensor, radius: int = 2) -> Tensor:
    """Soft argmin over the highest peak of the distribution alone.

    Where two surfaces meet, the distribution has two peaks, and equation 7 predicts a disparity between them
    that belongs to neither. This function uses the higher peak, similar to the sub-pixel MAP estimate of
    Tulyakov et al. (NeurIPS 2018), but is continuous in the scores, so that engines with different rounding
    agree. Its gradient moves the peak within the window; only a loss on the scores can change which peak is
    the highest.

    Args:
        scores: [B, D, H, W].
        radius: Number of candidates on either side of the peak that are used.

    Returns:
        [B, H, W], at least float32, in candidates, which are pixels of this grid.
    """
    scores = at_least_float32(scores)
    peak = soft_argmin(SHARPENING * scores.detach())
    window = _window_around(scores, peak, radius).clamp(min=NEARLY_ZERO)
    return soft_argmin(scores + window.log())


def expected_candidate(probability: Tensor) -> Tensor:
    """Sum of d · p(d) over the candidates of [B, D, H, W]."""
    candidates = torch.arange(probability.shape[1], dtype=probability.dtype, device=probability.device)
    # A product and a sum, because autocast would compute a matrix product in half precision.
    return (probability * candidates.view(-1, 1, 1)).sum(dim=1)


def confidence(scores: Tensor, predicted: Tensor, radius: int = 1) -> Tensor:
    """Probability that the true disparity lies within `radius` candidates of the prediction.

    A prediction is only meaningful where the distribution has a single peak. The confidence is the
    probability mass around the prediction, which is low where matches are ambiguous or the distribution is
    broad.

    Args:
        scores: [B, D, H, W].
        predicted: The disparity regressed from the scores, [B, H, W] in candidates.
        radius: Number of candidates on either side of the prediction that are counted.

    Returns:
        [B, H, W] in 0 … 1.
    """
    probability = torch.softmax(at_least_float32(scores), dim=1)
    return (probability * _window_around(probability, predicted, radius)).sum(dim=1).clamp(0, 1)


def probability_around(scores: Tensor, disparity: Tensor, radius: int) -> Tensor:
    """The probabilities of the 2·radius + 1 candidates around the disparity, [B, 2·radius + 1, H, W].

    Interpolated linearly between candidates, and replicated beyond the first and last candidate.
    """
    probability = torch.softmax(at_least_float32(scores), dim=1)  # [B, D, H, W]
    lower = disparity.floor()
    steps = torch.arange(-radius, radius + 2, device=scores.device).view(1, -1, 1, 1)
    candidates = (lower.long().unsqueeze(1) + steps).clamp(0, scores.shape[1] - 1)
    around = probability.gather(1, candidates)  # [B, 2·radius + 2, H, W]
    return torch.lerp(around[:, :-1], around[:, 1:], (disparity - lower).unsqueeze(1))


def _window_around(scores: Tensor, disparity: Tensor, radius: int) -> Tensor:
    """A window over the candidates of `scores` around a disparity [B, H, W]: 1 within `radius`, else 0.

    It falls off linearly at its edges, so that it is continuous in the disparity.
    """
    candidates = torch.arange(scores.shape[1], dtype=scores.dtype, device=scores.device)
    distance = (candidates.view(1, -1, 1, 1) - disparity.unsqueeze(1)).abs()
    return (radius + 1 - distance).clamp(0, 1)


class SoftArgmin(nn.Module):
    """`soft_argmin` as a part of a network."""

    def forward(self, scores: Tensor) -> Tensor:
        return soft_argmin(scores)


class PeakArgmin(nn.Module):
    """`peak_argmin` as a part of a network."""

    def forward(self, scores: Tensor) -> Tensor:
        return peak_argmin(scores)


REGRESSIONS: dict[str, type[nn.Module]] = {"soft_argmin": SoftArgmin, "peak": PeakArgmin}
