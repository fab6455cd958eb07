"""A dry run of a recipe: two steps of every stage, and an estimate of what the whole run takes."""

from __future__ import annotations

import math
import sys
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from rich.console import Console

from aanet.inference.memory import available_memory
from aanet.models import zoo
from aanet.training.recipe import StageSpec
from aanet.training.reporting import Report, Reporter
from aanet.training.schedules import Progress
from aanet.training.trainer import Trainer

STEPS = 2  # of every stage; the first one includes start-up, so only the second one is used in the estimate


@dataclass(frozen=True)
class PairCount:
    """How many pairs of a dataset are used."""

    name: str
    pairs: int

    def __str__(self) -> str:
        return f"{self.name} ({self.pairs:,} pairs)"


@dataclass(frozen=True)
class StageEstimate:
    """What remains to be trained of a stage."""

    name: str
    crop: tuple[int, int]
    batch: int
    steps: int
    seconds_per_step: float
    minutes: float

    def line(self, width: int) -> str:
        """Format as one line; the name is padded to `width`."""
        height, crop_width = self.crop
        return (
            f"  {self.name:{width}}  {height}×{crop_width}, batch {self.batch}, {self.steps:,} steps of "
            f"{self.seconds_per_step:.2f} s: {_duration(self.minutes)}"
        )


@dataclass(frozen=True)
class DryRun:
    """The findings of a dry run."""

    manifest: dict[str, Any]
    parameters: dict[str, int]  # of each part of the network
    data: list[PairCount]
    validation: list[PairCount]
    device: str
    processes: int
    stages: list[StageEstimate]
    peak_memory_bytes: int | None  # of one process; None if the system does not tell
    free_memory_bytes: int

    @property
    def minutes(self) -> float:
        """Estimated duration of all stages."""
        return sum(stage.minutes for stage in self.stages)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {**asdict(self), "minutes": self.minutes}

    def lines(self) -> list[str]:
        """Summarize for people."""
        recipe = self.manifest["recipe"]
        network, run = recipe["network"], recipe["run"]
        parts = ", ".join(f"{name} {count / 1e6:.2f} M" for name, count in self.parameters.items() if count)
        width = max((len(stage.name) for stage in self.stages), default=0)
        memory = "unknown" if self.peak_memory_bytes is None else f"{self.peak_memory_bytes / 1e9:.1f} GB"
        return [
            f"Network     {zoo.card(network['name']).title}, {sum(self.parameters.values()) / 1e6:.2f} M "
            f"parameters, disparities below {network['max_disparity']}",
            f"            {parts}",
            f"Start       {network['start_from'] or network['initialization'] + ' initialization'}, "
            f"seed {recipe['seed']}",
            f"Data        {', '.join(map(str, self.data))}",
            f"Validation  {', '.join(map(str, self.validation)) or 'none'}",
            f"Device      {self.device}, {run['precision']}, {self.processes} "
            f"{'process' if self.processes == 1 else 'processes'}, {run['workers']} data workers each",
            "Stages",
            *(stage.line(width) for stage in self.stages),
            f"Duration    {_duration(self.minutes)} in total, without validation",
            f"Memory      {memory} at most in one process; {self.free_memory_bytes / 1e9:.1f} GB are free",
        ]


class _Recorder(Reporter):
    """Keeps the reports of all steps, by the index of their stage, instead of printing them."""

    def __init__(self, trainer: Trainer) -> None:
        super().__init__(None, Console(quiet=True))
        self.trainer = trainer
        self.reports: dict[int, list[Report]] = {}

    def progress(self, report: Report) -> None:
        """Keep a report."""
        self.reports.setdefault(self.trainer.stage_index, []).append(report)


def dry_run(trainer: Trainer) -> DryRun:
    """Train two steps of every remaining stage and estimate the rest; the trainer must have no folder."""
    free = available_memory()
    resumed, progress = trainer.stage_index, replace(trainer.progress)
    recorder = _Recorder(trainer)
    trainer.reporter = recorder
    validation = [
        PairCount(each.name, min(each.limit or len(each.source), len(each.source)))
        for each in trainer.validation_sets
    ]
    trainer.validation_sets = [replace(each, limit=1) for each in trainer.validation_sets]
    trainer.run(steps_per_stage=STEPS)
    estimates = []
    for index, reports in recorder.reports.items():
        before = progress if index == resumed else Progress()
        before.epoch_pairs = len(trainer.sources[index])
        estimates.append(_estimate(trainer.recipe.stage[index], before, reports))
    return DryRun(
        manifest=trainer.manifest(),
        parameters={
            name: sum(parameter.numel() for parameter in part.parameters())
            for name, part in trainer.network.named_children()
        },
        data=[PairCount(source.name, len(source)) for source in trainer.sources[0].datasets],
        validation=validation,
        device=str(trainer.fabric.device),
        processes=trainer.fabric.world_size,
        stages=estimates,
        peak_memory_bytes=_peak_memory(trainer.fabric.device),
        free_memory_bytes=free,
    )


def _estimate(stage: StageSpec, before: Progress, reports: list[Report]) -> StageEstimate:
    """Estimate the rest of a stage from its progress before the dry run and the reports of the steps."""
    start = reports[-2].minutes if len(reports) > 1 else before.minutes
    seconds = max(60 * (reports[-1].minutes - start), 1e-6)
    left = stage.length - before.done(stage)  # in the unit of the stage
    steps = {"steps": left, "epochs": left * before.epoch_pairs / stage.batch, "minutes": 60 * left / seconds}
    count = math.ceil(steps[stage.unit])
    minutes = left if stage.unit == "minutes" else count * seconds / 60
    return StageEstimate(stage.name, stage.crop, stage.batch, count, seconds, minutes)


def _peak_memory(device: torch.device) -> int | None:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if sys.platform == "win32":
        return None
    import resource  # which Windows does not have

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak  # the unit differs


def _duration(minutes: float) -> str:
    if minutes < 1:
        return f"{60 * minutes:.0f} s"
    hours, rest = divmod(round(minutes), 60)
    return f"{hours} h {rest} min" if hours else f"{rest} min"
