"""From scores to disparity, and how sure that is."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from aanet.errors import AanetError, InputError, UnsupportedError
from aanet.models import zoo
from aanet.models.ganet import GuidedRegression
from aanet.models.regression import (
    PeakArgmin,
    SoftArgmin,
    confidence,
    expected_candidate,
    peak_argmin,
    soft_argmin,
)
from aanet.models.weights import checkpoint
from aanet.ops.guided import LGA_WEIGHTS
from helpers import naive


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


def test_two_equal_neighbors_meet_between_them() -> None:
    scores = torch.full((1, 10, 1, 1), -50.0)
    scores[:, 3:5] = 50
    assert soft_argmin(scores).item() == pytest.approx(3.5)


def test_enormous_scores_do_not_overflow() -> None:
    scores = torch.zeros(1, 5, 1, 1)
    scores[:, 2] = 1e30
    assert soft_argmin(scores).item() == pytest.approx(2)


@pytest.mark.usefixtures("torch_bf16")
@pytest.mark.parametrize("candidates", [64, 192])
def test_half_precision_scores_are_regressed_in_float32(candidates: int) -> None:
    scores = torch.zeros(1, candidates, 1, 1, dtype=torch.bfloat16)  # flat: the mean of all candidates
    with torch.autocast("cpu", torch.bfloat16):
        disparity = SoftArgmin()(scores)
    assert disparity.dtype == torch.float32
    assert disparity.item() == pytest.approx((candidates - 1) / 2, abs=1e-3)


def regress_unguided(cost: Tensor) -> Tensor:
    """The disparity [1, 6, 6] of GA-Net's training heads, which are not guided."""
    regression, local = GuidedRegression(24), [torch.zeros(1, LGA_WEIGHTS, 6, 6)] * 2
    unguided: Tensor = regression(regression.scores([cost, cost], local), local)[0]
    return unguided


@pytest.mark.usefixtures("torch_bf16")
def test_ganet_regresses_half_precision_costs_in_float32_over_one_candidate_more() -> None:
    cost = torch.zeros(1, 1, 8, 2, 2, dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        disparity = regress_unguided(cost)
    assert disparity.dtype == torch.float32
    torch.testing.assert_close(disparity, torch.full((1, 6, 6), 12.0))


def test_ganet_takes_low_costs_for_matches() -> None:
    cost = torch.full((1, 1, 8, 2, 2), 90.0)
    cost[:, :, 5] = -90
    disparity = regress_unguided(cost)
    # Candidate 5 of 8 has its center at 5.5 · 25/8 - 0.5 of the 25 candidates 0 … 24.
    torch.testing.assert_close(disparity, torch.full((1, 6, 6), 5.5 * 25 / 8 - 0.5), atol=0.5, rtol=0)


def test_expected_candidate_of_a_distribution() -> None:
    probability = torch.tensor([0.5, 0.25, 0.25]).view(1, 3, 1, 1)
    assert expected_candidate(probability).item() == pytest.approx(0.75)


@pytest.mark.parametrize("reach", [0, 1, 2])
def test_confidence_is_the_probability_around_the_prediction(reach: int) -> None:
    scores = random_scores(1, 7, 3, 3)
    ours = confidence(scores, soft_argmin(scores), reach)
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
    sure, torn = confidence(scores, soft_argmin(scores))[0, 0]
    assert sure.item() == pytest.approx(1)
    assert torn.item() == pytest.approx(0, abs=1e-6)


def test_confidence_in_one_of_two_far_peaks_is_the_share_of_that_peak() -> None:
    scores = torch.zeros(1, 32, 1, 1)
    scores[:, 2], scores[:, 28] = 60, 61
    share = 1 / (1 + math.exp(-1))
    assert confidence(scores, peak_argmin(scores)).item() == pytest.approx(share, abs=1e-6)


@pytest.mark.parametrize("reach", [0, 1, 2])
def test_peak_argmin_has_values_and_gradients_of_the_loop(reach: int) -> None:
    naive.assert_same_values_and_gradients(
        lambda scores: peak_argmin(scores, reach),
        lambda scores: naive.peak_argmin(scores, reach),
        random_scores(1, 9, 4, 5),  # peaks at either end too
    )


def test_between_two_surfaces_the_peak_stays_on_one_of_them() -> None:
    scores = torch.zeros(1, 32, 1, 1)
    scores[:, 4], scores[:, 24] = 30, 32
    assert 4 < soft_argmin(scores).item() < 22
    assert peak_argmin(scores).item() == pytest.approx(24, abs=1e-3)


def test_rounding_cannot_make_the_peak_jump() -> None:
    scores = random_scores(1, 64, 40, 40)
    noise = 1e-5 * torch.randn(scores.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    moved = (peak_argmin(scores + noise) - peak_argmin(scores)).abs().max().item()
    assert 0 < moved < 0.05  # flat scores: peaks that tie lie up to 63 candidates apart


@pytest.mark.usefixtures("torch_bf16")
def test_a_peak_is_regressed_in_float32() -> None:
    scores = torch.zeros(1, 192, 1, 1, dtype=torch.bfloat16)
    scores[:, 150:152] = 20
    with torch.autocast("cpu", torch.bfloat16):
        disparity = PeakArgmin()(scores)
    assert disparity.dtype == torch.float32
    assert disparity.item() == pytest.approx(150.5, abs=1e-3)


def test_a_network_keeps_its_regression_in_its_file(tmp_path: Path) -> None:
    network = zoo.build("stereonet_aa", max_disparity=32, regression="peak")
    checkpoint.save(network, tmp_path / "peak.safetensors")
    again = checkpoint.load(tmp_path / "peak.safetensors")
    assert isinstance(again.regression, PeakArgmin)
    assert again.architecture.regression == "peak"
    assert isinstance(zoo.build("stereonet_aa", max_disparity=32).regression, SoftArgmin)


@pytest.mark.parametrize(
    ("name", "regression", "kind", "sentence"),
    [
        ("stereonet_aa", "best", InputError, "must be one of soft_argmin, peak; got 'best'"),
        ("ganet", "peak", UnsupportedError, "ganet has a regression that cannot be replaced"),
    ],
)
def test_a_regression_that_cannot_be_set_is_refused(
    name: str, regression: str, kind: type[AanetError], sentence: str
) -> None:
    with pytest.raises(kind, match=sentence):
        zoo.build(name, max_disparity=48, regression=regression)
