"""From scores to disparity, and how sure that is."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import naive
from aanet.models.aggregation.ganet3d import UpsampledRegression
from aanet.models.regression import SoftArgmin, confidence, expected_candidate, soft_argmin


def random_scores(*shape: int, scale: float = 3.0) -> Tensor:
    return scale * torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_soft_argmin_has_values_and_gradients_of_the_loop() -> None:
    naive.assert_same_values_and_gradients(soft_argmin, naive.soft_argmin, random_scores(1, 6, 2, 3))


def test_soft_argmin_gradcheck() -> None:
    assert torch.autograd.gradcheck(soft_argmin, random_scores(1, 4, 2, 2).requires_grad_())


def test_a_high_score_means_a_match() -> None:
    scores = torch.zeros(1, 10, 2, 2)
    scores[:, 7] = 50
    torch.testing.assert_close(soft_argmin(scores), torch.full((1, 2, 2), 7.0))


def test_two_equal_neighbours_meet_between_them() -> None:
    scores = torch.full((1, 10, 1, 1), -50.0)
    scores[:, 3:5] = 50
    assert soft_argmin(scores).item() == pytest.approx(3.5)


def test_enormous_scores_do_not_overflow() -> None:
    scores = torch.zeros(1, 5, 1, 1)
    scores[:, 2] = 1e30
    assert soft_argmin(scores).item() == pytest.approx(2)


@pytest.mark.parametrize("candidates", [64, 192])
def test_half_precision_scores_are_regressed_in_float32(candidates: int) -> None:
    scores = torch.zeros(1, candidates, 1, 1, dtype=torch.bfloat16)  # flat: the mean of all candidates
    with torch.autocast("cpu", torch.bfloat16):
        disparity = SoftArgmin()(scores)
    assert disparity.dtype == torch.float32
    assert disparity.item() == pytest.approx((candidates - 1) / 2, abs=1e-3)


def test_ganet_regresses_half_precision_costs_in_float32_over_one_candidate_more() -> None:
    cost = torch.zeros(1, 1, 8, 2, 2, dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        disparity = UpsampledRegression(24)(cost, torch.Size((6, 6)))
    assert disparity.dtype == torch.float32
    torch.testing.assert_close(disparity, torch.full((1, 6, 6), 12.0))


def test_ganet_takes_low_costs_for_matches() -> None:
    cost = torch.full((1, 1, 8, 2, 2), 90.0)
    cost[:, :, 5] = -90
    disparity = UpsampledRegression(24)(cost, torch.Size((6, 6)))
    # Candidate 5 of 8 has its centre at 5.5 · 25/8 - 0.5 of the 25 candidates 0 … 24.
    torch.testing.assert_close(disparity, torch.full((1, 6, 6), 5.5 * 25 / 8 - 0.5), atol=0.5, rtol=0)


def test_expected_candidate_of_a_distribution() -> None:
    probability = torch.tensor([0.5, 0.25, 0.25]).view(1, 3, 1, 1)
    assert expected_candidate(probability).item() == pytest.approx(0.75)


@pytest.mark.parametrize("reach", [0, 1, 2])
def test_confidence_is_the_probability_around_the_prediction(reach: int) -> None:
    scores = random_scores(1, 7, 3, 3)
    ours = confidence(scores, reach)
    for y in range(3):
        for x in range(3):
            probability = torch.softmax(scores[0, :, y, x], dim=0).tolist()
            mean = sum(d * p for d, p in enumerate(probability))
            total = 0.0
            for d, p in enumerate(probability):
                distance = abs(d - mean)
                share = 1.0 if distance <= reach else max(0.0, reach + 1 - distance)
                total += share * p
            assert ours[0, y, x].item() == pytest.approx(total)


def test_confidence_is_one_for_a_peak_and_low_for_two_far_ones() -> None:
    scores = torch.zeros(1, 32, 1, 2)
    scores[:, 9, :, 0] = 60
    scores[:, 2, :, 1] = scores[:, 28, :, 1] = 60
    sure, torn = confidence(scores)[0, 0]
    assert sure.item() == pytest.approx(1)
    assert torn.item() == pytest.approx(0, abs=1e-6)
