"""What the benchmark compares is the same computation."""

from __future__ import annotations

import pytest
import torch

from aanet.models import zoo
from aanet.training import step_benchmark


def test_the_plain_network_predicts_the_same() -> None:
    torch.manual_seed(0)
    network = zoo.build("aanet", max_disparity=24).eval()
    left, right = torch.randn(2, 1, 3, 48, 96)
    with torch.no_grad():
        expected = network(left, right).disparity
        result = step_benchmark.plain(network)(left, right).disparity
    assert isinstance(network.cost_volume, step_benchmark.LoopCorrelation)
    assert torch.allclose(result, expected, atol=1e-3)


def test_every_variant_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    built = zoo.build("aanet", max_disparity=24, training_heads=True).state_dict()

    def build(name: str, training_heads: bool) -> object:
        network = zoo.NETWORKS[name].build(24, training_heads)
        network.load_state_dict(built)
        return network

    monkeypatch.setattr(step_benchmark.zoo, "build", build)
    timings = step_benchmark.benchmark_training_step(crop=(48, 96), batch=1, rounds=1)
    assert [timing.variant for timing in timings] == ["float32, NCHW, loop correlation", "float32", "bf16"]
    assert timings[0].speedup == 1
    assert all(timing.seconds > 0 for timing in timings)
