"""The losses against naive loops over pixels."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from aanet.errors import UnsupportedError
from aanet.training.losses import (
    CLAMP,
    PREDICTION_WEIGHTS,
    CellLoss,
    FinestLoss,
    MatchingLoss,
    PyramidLoss,
    Truth,
    candidate_cross_entropy,
    masked_mean,
    sample_truth,
    score_loss,
)


def make_truth(height: int = 12, width: int = 24, seed: int = 0, top: float = 30.0) -> Truth:
    generator = torch.Generator().manual_seed(seed)
    disparity = torch.rand(2, height, width, generator=generator) * top
    disparity[torch.rand(disparity.shape, generator=generator) < 0.4] = 0
    pseudo = torch.rand(2, height, width, generator=generator) * top
    pseudo[torch.rand(pseudo.shape, generator=generator) < 0.3] = 0
    visible = torch.rand(disparity.shape, generator=generator) < 0.8
    return Truth(disparity, visible, pseudo)


def bilinear(plane: Tensor, y: float, x: float) -> float:
    """Sample [h, w] at a point given in its own pixels, pixel centers on whole numbers, border repeated."""
    h, w = plane.shape
    y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, h - 1), min(x0 + 1, w - 1)
    fy, fx = y - y0, x - x0
    upper = (1 - fx) * plane[y0, x0] + fx * plane[y0, x1]
    lower = (1 - fx) * plane[y1, x0] + fx * plane[y1, x1]
    return float((1 - fy) * upper + fy * lower)


def naive_prediction_loss(prediction: Tensor, truth: Truth, max_disparity: int) -> float:
    batch, height, width = truth.disparity.shape
    h, w = prediction.shape[-2:]
    total, count = 0.0, 0
    for b in range(batch):
        for y in range(height):
            for x in range(width):
                target = float(truth.disparity[b, y, x])
                if target == 0:
                    target = float(truth.pseudo[b, y, x])
                if not 0 < target < max_disparity:
                    continue
                at_y, at_x = (y + 0.5) * h / height - 0.5, (x + 0.5) * w / width - 0.5
                value = bilinear(prediction[b], at_y, at_x) * width / w
                error = abs(value - target)
                total += 0.5 * error**2 if error < 1 else error - 0.5
                count += 1
    return total / count


@pytest.mark.parametrize("number", [1, 3, 4, 5])
def test_pyramid_loss_is_equation_9_with_the_published_weights(number: int) -> None:
    truth = make_truth()
    sizes = [(1, 2), (2, 4), (4, 8), (6, 12), (12, 24)][-number:]
    predictions = [torch.rand(2, h, w) * 25 * w / 24 for h, w in sizes]
    published = {5: [1, 1, 1, 2 / 3, 1 / 3], 4: [1, 1, 2 / 3, 1 / 3], 3: [1, 1, 1], 1: [1]}[number]
    expected = sum(
        weight * naive_prediction_loss(prediction, truth, 24)
        for weight, prediction in zip(published, reversed(predictions), strict=True)
    )
    assert float(PyramidLoss(24)(predictions, truth)) == pytest.approx(expected, rel=1e-5)


def test_cell_loss_compares_every_prediction_on_its_own_grid_and_clamps_coarse_ones() -> None:
    truth = make_truth(8, 16, top=60.0)
    generator = torch.Generator().manual_seed(3)
    coarse, full = (
        torch.rand(2, 2, 4, generator=generator) * 8,
        torch.rand(2, 8, 16, generator=generator) * 30,
    )

    def error(value: float, target: float) -> float:
        distance = abs(value - target)
        return distance - 0.5 if distance > 1 else distance**2 / 2

    target = torch.where(truth.disparity > 0, truth.disparity, truth.pseudo)
    known = [tuple(place) for place in ((target > 0) & (target < 48)).nonzero().tolist()]
    at_full = [error(float(full[place]), float(target[place])) for place in known]
    at_cells = [
        min(error(float(coarse[b, y // 4, x // 4]) * 4, float(target[b, y, x])), CLAMP)
        for b, y, x in known
        if y % 4 == 2 and x % 4 == 2
    ]
    expected = sum(at_full) / len(at_full) + 0.5 * sum(at_cells) / len(at_cells)
    assert float(CellLoss(48)([coarse, full], truth)) == pytest.approx(expected, rel=1e-5)
    assert CLAMP in at_cells  # so that the test sees it
    assert max(at_full) > CLAMP


def test_finest_loss_sees_only_the_last_prediction() -> None:
    truth = make_truth()
    coarse = torch.rand(2, 4, 8, requires_grad=True)
    fine = torch.rand(2, 12, 24, requires_grad=True)
    loss = FinestLoss(24)([coarse, fine], truth)
    loss.backward()
    assert coarse.grad is None
    assert float(loss.detach()) == pytest.approx(naive_prediction_loss(fine.detach(), truth, 24), rel=1e-5)


def test_pixels_beyond_the_range_or_without_any_truth_have_no_gradient() -> None:
    truth = make_truth()
    prediction = torch.rand(2, 12, 24, requires_grad=True)
    PyramidLoss(20)([prediction], truth).backward()
    target = torch.where(truth.disparity > 0, truth.disparity, truth.pseudo)
    assert prediction.grad is not None
    assert torch.equal(prediction.grad != 0, (target > 0) & (target < 20))


def test_pseudo_truth_never_overrides_truth() -> None:
    truth = Truth(
        torch.full((1, 2, 2), 5.0), torch.ones(1, 2, 2, dtype=torch.bool), torch.full((1, 2, 2), 9.0)
    )
    assert float(PyramidLoss(24)([torch.full((1, 2, 2), 5.0)], truth)) == 0


def test_loss_is_float32_whatever_the_prediction_is() -> None:
    loss = PyramidLoss(24)([torch.rand(2, 12, 24).bfloat16()], make_truth())
    assert loss.dtype == torch.float32


def test_a_batch_without_truth_gives_zero_and_not_nan() -> None:
    nothing = Truth(torch.zeros(1, 4, 4), torch.ones(1, 4, 4, dtype=torch.bool), torch.zeros(1, 4, 4))
    prediction = torch.rand(1, 4, 4, requires_grad=True)
    loss = PyramidLoss(24)([prediction], nothing)
    loss.backward()
    assert float(loss.detach()) == 0
    assert prediction.grad is not None
    assert prediction.grad.abs().sum() == 0


def test_masked_values_that_are_not_finite_do_not_matter() -> None:
    values = torch.tensor([1.0, math.nan, 3.0])
    assert float(masked_mean(values, torch.tensor([True, False, True]))) == 2


def test_another_number_of_predictions_is_named() -> None:
    with pytest.raises(UnsupportedError, match="weights for 5, 4, 3, 1 predictions; the network has 2"):
        PyramidLoss(24)([torch.rand(2, 12, 24)] * 2, make_truth())
    assert set(PREDICTION_WEIGHTS) == {1, 3, 4, 5}


@pytest.mark.parametrize("hidden_too", [False, True])
@pytest.mark.parametrize("step", [1, 3])
def test_cross_entropy_is_a_sum_over_candidates_and_cells(step: int, hidden_too: bool) -> None:
    truth = make_truth(top=20.0)
    h, w, candidates = 12 // step, 24 // step, 5
    logits = torch.randn(2, candidates, h, w)
    total, count = 0.0, 0
    for b in range(2):
        for y in range(h):
            for x in range(w):
                full_y, full_x = y * step + step // 2, x * step + step // 2
                d = float(truth.disparity[b, full_y, full_x]) / step
                shown = bool(truth.visible[b, full_y, full_x]) and x - d >= 0
                if d == 0 or d > candidates - 1 or not (shown or hidden_too):
                    continue
                lower = min(int(d), candidates - 2)
                log_p = logits[b, :, y, x].log_softmax(0)
                total -= float((1 - (d - lower)) * log_p[lower] + (d - lower) * log_p[lower + 1])
                count += 1
    assert count > 10
    cells = sample_truth(truth, h, w)
    found = candidate_cross_entropy(logits, cells, cells.known if hidden_too else cells.matchable)
    assert float(found) == pytest.approx(total / count, rel=1e-5)


def test_the_score_loss_is_least_for_scores_that_are_sure_of_the_true_disparity() -> None:
    truth = Truth(
        torch.full((1, 12, 24), 6.0), torch.ones(1, 12, 24, dtype=torch.bool), torch.zeros(1, 12, 24)
    )

    def loss(*peaks: int) -> float:
        score = torch.zeros(1, 8, 4, 8)
        score[:, list(peaks)] = 10.0
        return float(score_loss([score], truth))

    assert loss(2) < 0.01  # 6 px at a third of the size
    two_surfaces = math.log(2 * math.exp(10) + 6)  # the same mean, and none of the probability at 2
    assert loss(1, 3) == pytest.approx(two_surfaces, rel=1e-5)


def test_matching_loss_learns_its_temperature() -> None:
    """With right answers in the volume, a larger temperature lowers the loss."""
    truth = Truth(torch.full((1, 6, 12), 2.0), torch.ones(1, 6, 12, dtype=torch.bool), torch.zeros(1, 6, 12))
    volume = torch.zeros(1, 4, 6, 12)
    volume[:, 2] = 0.1
    loss = MatchingLoss(scales=1, temperature=5.0)
    value = loss([volume], truth)
    value.backward()
    assert float(value.detach()) == pytest.approx(-math.log(math.exp(0.5) / (3 + math.exp(0.5))), rel=1e-5)
    assert loss.log_temperature.grad is not None
    assert float(loss.log_temperature.grad) < 0
