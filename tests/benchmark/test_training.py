from __future__ import annotations

import pytest

from aanet.benchmark import training
from aanet.models import zoo


def test_every_variant_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        training.zoo, "build", lambda name, training_heads: zoo.card(name).build(24, training_heads)
    )
    timings = training.benchmark_training_step(crop=(48, 96), batch=1, rounds=1, bf16=True)
    assert [timing.variant for timing in timings] == ["baseline (float32, NCHW, loop)", "float32", "bf16"]
    assert timings[0].speedup == 1
    assert all(timing.seconds > 0 for timing in timings)
    assert len(training.benchmark_training_step(crop=(48, 96), batch=1, rounds=1, bf16=False)) == 2
