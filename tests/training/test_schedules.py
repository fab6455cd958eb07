"""Learning rates over steps, epochs and minutes."""

from __future__ import annotations

import math

import pytest

from aanet.training.recipe import StageSpec
from aanet.training.schedules import Progress, cosine, one_cycle


def stage(**changes: object) -> StageSpec:
    values: dict[str, object] = {"crop": (48, 96), "batch": 4, "learning_rate": 0.001} | changes
    return StageSpec(**values)  # type: ignore[arg-type]  # a test's shorthand


def test_milestones_halve_the_rate_in_epochs() -> None:
    spec = stage(epochs=64, schedule="milestones", milestones=(20, 30))
    rates = {
        epoch: Progress(pairs=epoch * 100, epoch_pairs=100).learning_rate(spec)
        for epoch in (0, 19, 20, 29, 30)
    }
    assert rates == pytest.approx({0: 1e-3, 19: 1e-3, 20: 5e-4, 29: 5e-4, 30: 2.5e-4})


def test_cosine_falls_from_one_to_zero_and_stays_there() -> None:
    assert cosine(0, 10) == 1
    assert cosine(5, 10) == pytest.approx(0.5)
    assert cosine(10, 10) == pytest.approx(0)
    assert cosine(12, 10) == pytest.approx(0)


def test_one_cycle_rises_then_falls() -> None:
    values = [one_cycle(done, 100) for done in range(101)]
    top = values.index(max(values))
    assert top == 30
    assert values[top] == pytest.approx(1)
    assert values[:top] == sorted(values[:top])
    assert values[top:] == sorted(values[top:], reverse=True)
    assert values[0] == pytest.approx(1 / 25)
    assert values[-1] == pytest.approx(1e-4)


def test_progress_is_measured_in_the_unit_of_the_stage() -> None:
    progress = Progress(steps=30, pairs=120, epoch_pairs=60, minutes=5)
    assert progress.share(stage(steps=60)) == 0.5
    assert progress.share(stage(epochs=8)) == 0.25
    assert progress.share(stage(minutes=4)) == 1


def test_minutes_drive_a_schedule() -> None:
    spec = stage(minutes=10, schedule="cosine")
    expected = 0.001 * 0.5 * (1 + math.cos(math.pi * 0.25))
    assert Progress(minutes=2.5).learning_rate(spec) == pytest.approx(expected)


def test_warmup_counts_steps() -> None:
    spec = stage(steps=100, warmup_steps=10)
    assert Progress(steps=0).learning_rate(spec) == pytest.approx(1e-4)
    assert Progress(steps=4).learning_rate(spec) == pytest.approx(5e-4)
    assert Progress(steps=50).learning_rate(spec) == pytest.approx(1e-3)
