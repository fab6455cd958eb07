"""The training loop: stages, steps, reports, validation and checkpoints."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from rich.console import Console

from aanet.errors import InputError, ReadError, UnsupportedError
from aanet.models.network import StereoNetwork
from aanet.synthetic.heap import keep_freed_memory
from aanet.training import batches, environment, resuming, stages
from aanet.training.checkpoint import (
    TrainingState,
    random_states,
    restore_random_states,
    save_checkpoint,
    set_aside,
)
from aanet.training.ema import WeightAverage
from aanet.training.final_weights import write_final_weights
from aanet.training.manifest import describe_run, write_manifest
from aanet.training.optimizer import make_optimizer, set_learning_rate
from aanet.training.peers import Peers
from aanet.training.recipe import Recipe, StageSpec
from aanet.training.reporting import Averages, Report, Reporter, training_picture
from aanet.training.run_lock import locked, wait_until_free
from aanet.training.schedules import Progress
from aanet.training.step import Stepper, StepResult
from aanet.training.transfer import without_training_heads
from aanet.training.validation import validate

MAX_NON_FINITE = 10


class Trainer:
    """Trains a network through the stages of a recipe; without a folder nothing is written to disk."""

    def __init__(
        self, recipe: Recipe, folder: Path | None, console: Console, peers: Peers | None = None
    ) -> None:
        """With `peers`, a mistake that one of several processes finds is an error in all of them."""
        torch.set_flush_denormal(True)  # denormal numbers slow down a CPU
        keep_freed_memory()
        if recipe.run.threads:
            torch.set_num_threads(recipe.run.threads)
        self.recipe = recipe
        self.peers = peers or Peers.from_environment()
        with self.peers.together():
            self.fabric = environment.make_fabric(recipe)
        environment.launch(self.fabric, self.peers)
        self.folder = folder if self.fabric.is_global_zero else None
        quiet = Console(quiet=True)
        self.reporter = Reporter(self.folder, console if self.fabric.is_global_zero else quiet)
        environment.seed_everything(recipe.seed)
        # All stages are checked and their data opened now, so that mistakes in late ones are found at once.
        with self.peers.together():
            network, self.hints = environment.prepare_network(recipe)
            self.network = network.to(self.fabric.device)
            self.matching_loss = stages.matching_loss_of(self.network)
            for stage in recipe.stage:
                stages.check_stage(stage, self.network, self.matching_loss)
                batches.pairs_per_process(stage, self.fabric.world_size)
            self.validation_sets = environment.open_validation(recipe) if self.fabric.is_global_zero else []
            self.sources = batches.open_stages(recipe)
        self.peers.compare({"number of pairs": ", ".join(str(len(source)) for source in self.sources)})
        self.average = self._new_average()
        self.stage_index = 0
        self.step = 0  # over all stages
        self.skipped = 0  # steps with a loss that was not finite
        self.progress = Progress()  # in the current stage
        self.optimizer_state: dict[str, Any] | None = None  # from a checkpoint, until its stage is set up
        self.told_to_stop = False  # by a signal to this process
        self.stopping = False  # all processes, after the same step

    def resume(self, folder: Path, or_start: bool = False) -> None:
        """Continue from the newest undamaged checkpoint in a run's folder.

        With `or_start`, a run without a checkpoint starts, and the end of an earlier process is waited for.
        """
        with self.peers.together():
            if or_start and self.folder is not None:
                wait_until_free(self.folder)
        found = resuming.find_checkpoints(self.fabric, self.peers, folder)
        if not found and or_start:
            self.reporter.say(f"There is no checkpoint in {folder / 'checkpoints'}: the run starts.")
            return
        if not found:
            raise ReadError(f"There is no checkpoint in {folder / 'checkpoints'} to resume from.")
        damaged: list[Path] = []
        for path in reversed(found):
            try:
                self._restore(resuming.read_checkpoint(self.fabric, path, self.recipe.network.name), path)
            except ReadError as error:
                self.reporter.say(f"{error} Trying the checkpoint before it.")
                damaged.append(path)
                continue
            break
        else:
            raise ReadError(f"All checkpoints in {folder / 'checkpoints'} are damaged.")
        if damaged:
            self.reporter.say(f"continuing from {path}.")
        if self.folder is not None:
            for each in damaged:
                set_aside(each)

    def _restore(self, checkpoint: TrainingState, path: Path) -> None:
        try:
            self.network.load_state_dict(checkpoint.weights)
        except RuntimeError as error:
            raise UnsupportedError(f"{path} does not fit the network of the recipe.") from error
        try:
            self._restore_state(checkpoint)
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, IndexError) as error:
            raise ReadError(f"The state in {path} is damaged ({type(error).__name__}).") from error

    def _restore_state(self, checkpoint: TrainingState) -> None:
        state = checkpoint.state
        self.step = checkpoint.step
        self.stage_index = state["stage"]
        self.skipped = state["skipped"]
        self.progress = Progress(**state["progress"])
        self.optimizer_state = state["optimizer"]
        if self.matching_loss is not None:
            self.matching_loss.load_state_dict(state["matching_loss"])
        if self.average is not None and checkpoint.average:
            self.average.load(checkpoint.average, state["average_updates"])
        restore_random_states(state["random"])
        processes = state.get("processes", self.fabric.world_size)  # not in older checkpoints
        if processes != self.fabric.world_size:
            self.reporter.say(resuming.where_exactness_ends(processes, self.fabric.world_size))

    def run(self, stop_after: int | None = None, steps_per_stage: int | None = None) -> Path | None:
        """Train the remaining stages, then export the weights.

        Args:
            stop_after: Stop, as on SIGTERM, after this number of steps over all stages.
            steps_per_stage: Train at most this number of steps of every stage, to try a recipe.

        Returns:
            The file of exported weights; None if stopped before the end, or without a folder.
        """
        with self._alone(), self.reporter, environment.on_stop_signal(self._ask_to_stop):
            for index in range(self.stage_index, len(self.recipe.stage)):
                if index > self.stage_index:
                    self.stage_index, self.progress, self.optimizer_state = index, Progress(), None
                if self.progress.share(self.recipe.stage[index]) < 1:
                    self._run_stage(self.recipe.stage[index], stop_after, steps_per_stage)
                if self.stopping:
                    self.reporter.say(f"stopped after step {self.step}; --resume continues from there.")
                    return None
            with self.peers.together():
                return self._export()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock of the folder, in the first process, and prepare the files of the run."""
        with contextlib.ExitStack() as stack:
            with self.peers.together():
                if self.folder is not None:
                    stack.enter_context(locked(self.folder))
                    self.reporter.continue_after(self.step)
                    write_manifest(self.folder / "manifest.json", self.manifest())
            yield

    def manifest(self) -> dict[str, Any]:
        """Return a description of the run as plain values."""
        data = [
            {"stage": stage.name, "pairs": len(source), "source": source.name}
            for stage, source in zip(self.recipe.stage, self.sources, strict=True)
        ]
        return describe_run(self.recipe, data)

    def _ask_to_stop(self) -> None:
        self.told_to_stop = True

    def _run_stage(self, stage: StageSpec, stop_after: int | None, steps_per_stage: int | None) -> None:
        stepper = self._set_up(stage)
        averages = Averages()
        last = None if steps_per_stage is None else self.progress.steps + steps_per_stage
        clock = saved = validated = time.monotonic()
        while self.progress.share(stage) < 1 and not self.stopping:
            set_learning_rate(stepper.optimizer, self.progress.learning_rate(stage))
            stepper.plain_module.matching_weight = stages.matching_weight(stage, self.progress.share(stage))
            result = stepper.step()
            self._count(result, stage)
            seconds, clock = self._agree(time.monotonic() - clock), time.monotonic()
            self.progress.minutes += seconds / 60
            averages.add(result.loss, result.epe, stage.batch, seconds)
            averages = self._report(stage, result, averages)
            if self.validation_sets and clock - validated > 60 * self.recipe.validation.every_minutes:
                self._save(stepper, self._validate())
                saved = validated = time.monotonic()
            elif clock - saved > 60 * self.recipe.run.checkpoint_minutes:
                self._save(stepper)
                saved = time.monotonic()
            if self.step == stop_after:
                self.stopping = True
            if self.progress.steps == last:
                break
        with self.peers.together():
            self._save(stepper, math.nan if self.stopping else self._validate())

    def _new_average(self) -> WeightAverage | None:
        decay = self.recipe.run.ema_decay
        return WeightAverage(self.network, decay) if decay else None

    def _begin(self) -> None:
        """Prepare the first step of a stage after another one.

        The stage starts from the weights that the previous one would have exported: the average, if any.
        """
        if self.average is not None:
            self.network.load_state_dict(self.average.state)
        before = self.recipe.stage[self.stage_index - 1]
        matched_first = before.trains == "features" and self.recipe.network.initialization == "matching"
        if matched_first and self.matching_loss is not None:
            stages.fold_temperature(self.network, self.matching_loss)
        self.average = self._new_average()  # starts anew in every stage

    def _set_up(self, stage: StageSpec) -> Stepper:
        """Make the module, optimizer and batches of a stage, at its current progress."""
        if self.stage_index > 0 and self.progress.steps == 0:
            self._begin()
        module = stages.make_stage(stage, self.network, self.matching_loss).train()
        if stage.frozen_batch_norm:
            stages.freeze_batch_norm(module)
        source = self.sources[self.stage_index]
        self.progress.epoch_pairs = len(source)
        seed = self.recipe.seed + 1000 * self.stage_index  # a different order of pairs in every stage
        rank, processes = self.fabric.global_rank, self.fabric.world_size
        pairs = batches.pairs_per_process(stage, processes)
        share = batches.Share(self.progress.pairs, pairs, rank, processes)
        augmentation = batches.make_augmentation(self.recipe.augmentation, stage.crop)
        loader = batches.make_loader(
            batches.AugmentedPairs(source, augmentation, seed),
            batches.PairStream(len(source), seed, share),
            self.recipe.run.workers,
        )
        bf16 = self.recipe.run.precision == "bf16-mixed"
        optimizer = make_optimizer(self.recipe.optimizer, module.named_parameters(), bf16)
        stepper = Stepper(self.fabric, module, optimizer, iter(loader), stage, self.recipe)
        if self.optimizer_state is not None:
            stepper.optimizer.load_state_dict(self.optimizer_state)
            self.optimizer_state = None
        return stepper

    def _count(self, result: StepResult, stage: StageSpec) -> None:
        self.step += 1
        self.progress.steps += 1
        self.progress.pairs += stage.batch
        if result.finite:
            if self.average is not None:
                self.average.update(self.network)
            return
        self.skipped += 1
        self.reporter.say(f"step {self.step} skipped, its loss is not finite: {', '.join(result.names)}")
        if self.skipped >= MAX_NON_FINITE:
            raise InputError(
                f"The loss was not finite in {self.skipped} steps, the last time for "
                f"{', '.join(result.names)}; a lower learning rate or gradient clipping may help."
            )

    def _agree(self, seconds: float) -> float:
        """Stop all processes after the same step if one was told to; returns the first one's time."""
        asked = float(self.told_to_stop)
        if self.fabric.world_size > 1:
            own = [seconds if self.fabric.is_global_zero else 0.0, asked]
            values = torch.tensor(own, dtype=torch.float64, device=self.fabric.device)
            total = self.fabric.all_reduce(values, reduce_op="sum")
            assert isinstance(total, torch.Tensor)  # as what was given
            seconds, asked = total.tolist()
        # Not by the handler of the signal, which may come when this process alone is about to take a step.
        self.stopping = asked > 0
        return seconds

    def _report(self, stage: StageSpec, result: StepResult, averages: Averages) -> Averages:
        """Report progress; returns the averages to continue with."""
        share = self.progress.share(stage)
        report = Report(
            stage=stage.name,
            step=self.step,
            loss=averages.loss,
            epe=averages.epe,
            learning_rate=self.progress.learning_rate(stage),
            pairs_per_second=averages.pairs_per_second,
            share=share,
            minutes=self.progress.minutes,
            minutes_left=self.progress.minutes * (1 - share) / share if share else math.nan,
        )
        self.reporter.progress(report)
        every = self.recipe.run.picture_steps
        if every and self.step % every == 0:
            picture = training_picture(result.batch, result.disparity, self.recipe.network.max_disparity)
            self.reporter.picture("training", self.step, picture)
        if self.step % self.recipe.run.log_steps == 0:
            self.reporter.log(report)
            return Averages()
        return averages

    def _validate(self) -> float:
        """Return the mean EPE over the validation sets; NaN without any, or if only features are trained."""
        if not self.validation_sets or self.recipe.stage[self.stage_index].trains == "features":
            return math.nan
        scores = validate(self._predictor(), self.validation_sets, self.hints)
        self.reporter.validation(self.step, scores)
        return fmean(score["EPE"] for score in scores.values())

    def _predictor(self) -> StereoNetwork:
        """Return the network as it would be exported now, with averaged weights if there are any."""
        state = self.network.state_dict() if self.average is None else self.average.state
        return without_training_heads(self.network, state)

    def _save(self, stepper: Stepper, score: float = math.nan) -> None:
        if self.folder is None:
            return
        state = {
            "stage": self.stage_index,
            "skipped": self.skipped,
            "progress": asdict(self.progress),
            "optimizer": stepper.optimizer.state_dict(),
            "matching_loss": self.matching_loss.state_dict() if self.matching_loss else {},
            "average_updates": self.average.updates if self.average else 0,
            "random": random_states(),
            "processes": self.fabric.world_size,
        }
        average = self.average.state if self.average else {}
        checkpoint = TrainingState(
            self.recipe.network.name, self.step, score, self.network.state_dict(), average, state
        )
        save_checkpoint(self.folder / "checkpoints", checkpoint)

    def _export(self) -> Path | None:
        """Write the final weights: the average, if there is one."""
        if self.folder is None:
            return None
        if self.average is not None:
            self.network.load_state_dict(self.average.state)
        path = write_final_weights(self.folder, self.network, self.hints, self.recipe, self.step)
        self.reporter.say(f"wrote {path}")
        return path
