from __future__ import annotations

import torch

from aanet.benchmark.baseline import LoopCorrelationPyramid, as_baseline, loop_correlation, random_pair
from aanet.ops import correlation_volume
from helpers.small_networks import build_small


def test_loop_correlation_is_the_same_volume() -> None:
    left, right = torch.randn(2, 2, 8, 5, 13).unbind()
    torch.testing.assert_close(loop_correlation(left, right, 20), correlation_volume(left, right, 20))


def test_the_baseline_predicts_what_the_network_predicts() -> None:
    network, twin = build_small("aanet", 48), build_small("aanet", 48)
    baseline = as_baseline(twin)
    assert isinstance(twin.cost_volume, LoopCorrelationPyramid)
    assert all(parameter.is_contiguous() for parameter in twin.parameters())
    pair = random_pair((48, 96))
    with torch.inference_mode():
        torch.testing.assert_close(baseline(*pair).disparity, network(*pair).disparity, atol=1e-3, rtol=0)


def test_a_random_pair_is_the_same_every_time() -> None:
    assert torch.equal(random_pair((4, 6))[0], random_pair((4, 6))[0])
    assert not torch.equal(*random_pair((4, 6)))
