from __future__ import annotations

import pytest

from aanet.benchmark import training
from aanet.engines import bf16_support
from aanet.engines.bf16_support import Bf16Support
from aanet.errors import AanetError
from aanet.models import zoo


@pytest.mark.slow
@pytest.mark.usefixtures("torch_bf16")
def test_every_variant_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        training.zoo, "build", lambda name, training_heads: zoo.card(name).build(24, training_heads)
    )
    timings = training.benchmark_training_step(crop=(48, 96), batch=1, rounds=1, bf16=True)
    assert [timing.variant for timing in timings] == ["baseline (float32, NCHW, loop)", "float32", "bf16"]
    assert timings[0].speedup == 1
    assert all(timing.seconds > 0 for timing in timings)
    assert len(training.benchmark_training_step(crop=(48, 96), batch=1, rounds=1, bf16=False)) == 2


@pytest.mark.parametrize(
    "support",
    [
        Bf16Support(True, "it is emulated"),
        Bf16Support(False, "a short probe ended with SIGILL"),
    ],
)
def test_bf16_is_left_out_where_it_is_emulated_or_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, support: Bf16Support
) -> None:
    monkeypatch.setitem(bf16_support._results, "torch", support)
    monkeypatch.setattr(training, "_step", lambda *_: lambda: None)
    variants = [timing.variant for timing in training.benchmark_training_step("stereonet_aa", rounds=1)]
    assert variants == ["baseline (float32, NCHW, loop)", "float32"]
    if not support.works:
        with pytest.raises(AanetError, match="PyTorch here: a short probe ended with SIGILL"):
            training.benchmark_training_step("stereonet_aa", rounds=1, bf16=True)
