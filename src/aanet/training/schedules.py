"""Learning rate schedules over steps, epochs or minutes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from aanet.training.recipe import StageSpec

# The factor on the learning rate after `done` of `total` steps, epochs or minutes.
Schedule = Callable[[float, float], float]

ONE_CYCLE_WARMUP = 0.3  # share of the stage during which the learning rate rises
ONE_CYCLE_START = 1 / 25
ONE_CYCLE_END = 1e-4


@dataclass(frozen=True)
class Milestones:
    """Multiply the learning rate by `factor` at each milestone, as the paper does."""

    milestones: tuple[float, ...]
    factor: float

    def __call__(self, done: float, total: float) -> float:  # noqa: ARG002 - milestones are absolute
        """The factor after `done`."""
        return self.factor ** sum(done >= milestone for milestone in self.milestones)


def constant(done: float, total: float) -> float:  # noqa: ARG001 - one signature for all schedules
    """The same learning rate throughout."""
    return 1.0


def cosine(done: float, total: float) -> float:
    """Half a cosine from 1 to 0."""
    return 0.5 * (1 + math.cos(math.pi * min(done / total, 1)))


def one_cycle(done: float, total: float) -> float:
    """Rise linearly to 1, then fall on half a cosine almost to 0."""
    share = min(done / total, 1)
    if share < ONE_CYCLE_WARMUP:
        return ONE_CYCLE_START + (1 - ONE_CYCLE_START) * share / ONE_CYCLE_WARMUP
    fall = (share - ONE_CYCLE_WARMUP) / (1 - ONE_CYCLE_WARMUP)
    return ONE_CYCLE_END + (1 - ONE_CYCLE_END) * 0.5 * (1 + math.cos(math.pi * fall))


def make_schedule(stage: StageSpec) -> Schedule:
    """Return the schedule of a stage."""
    schedules: dict[str, Schedule] = {
        "constant": constant,
        "milestones": Milestones(stage.milestones, stage.factor),
        "cosine": cosine,
        "one_cycle": one_cycle,
    }
    return schedules[stage.schedule]


@dataclass
class Progress:
    """The progress of a stage, as stored in checkpoints; `minutes` exclude interruptions."""

    steps: int = 0
    pairs: int = 0
    epoch_pairs: int = 1  # pairs in an epoch
    minutes: float = 0.0

    def done(self, stage: StageSpec) -> float:
        """Progress in the stage's own unit."""
        amounts = {"steps": self.steps, "epochs": self.pairs / self.epoch_pairs, "minutes": self.minutes}
        return amounts[stage.unit]

    def share(self, stage: StageSpec) -> float:
        """Progress as a share of the stage's length."""
        return min(self.done(stage) / stage.length, 1.0) if stage.length else 1.0

    def learning_rate(self, stage: StageSpec) -> float:
        """The learning rate of the next step."""
        warmup = min((self.steps + 1) / stage.warmup_steps, 1.0) if stage.warmup_steps else 1.0
        return stage.learning_rate * warmup * make_schedule(stage)(self.done(stage), stage.length)
