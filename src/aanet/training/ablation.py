"""The paper's ablation (table 1): AANet and its versions without ISA, CSA and both, trained side by side.

All four stand on the same features, which were trained to match first and are then frozen. Every step renders
one batch and computes its features and matching costs once; each network then aggregates them and takes its
own optimizer step. So the networks see the same pairs in the same order, and differ in their aggregation
only. The refinement stays at its initialization, which corrects nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from rich.console import Console
from torch import Tensor

from aanet.errors import AanetError, InputError, ReadError
from aanet.io.atomic import atomic_path
from aanet.models import zoo
from aanet.models.aggregation import AdaptiveAggregation
from aanet.models.network import StereoNetwork, normalize
from aanet.models.weights import checkpoint
from aanet.ops import resize_disparity
from aanet.training import batches, environment, stages
from aanet.training.checkpoint import TrainingState, checkpoints, load_checkpoint, save_checkpoint
from aanet.training.ema import WeightAverage
from aanet.training.losses import PyramidLoss, Truth, score_loss
from aanet.training.optimizer import make_optimizer, set_learning_rate
from aanet.training.recipe import Recipe, StageSpec
from aanet.training.schedules import Progress
from aanet.training.step import end_point_error
from aanet.training.trainer import Trainer
from aanet.training.transfer import without_training_heads

NETWORKS = ("aanet_no_isa_csa", "aanet_no_isa", "aanet_no_csa", "aanet")  # the rows of table 1
BATCH_SEED = 1000  # added to the recipe's, as the trainer does for a second stage

# Told after every step: its number, and the loss and the EPE of each network.
Report = Callable[[int, dict[str, tuple[float, float]]], None]


class Candidate:
    """One network of the comparison, with its optimizer and the average of its weights."""

    def __init__(self, network: StereoNetwork, recipe: Recipe) -> None:
        assert isinstance(network.aggregation, AdaptiveAggregation)
        self.network, self.aggregation = network, network.aggregation
        self.name = network.architecture.builder
        network.requires_grad_(False)
        self.aggregation.requires_grad_(True)
        network.eval()
        self.aggregation.train()
        self.optimizer = make_optimizer(recipe.optimizer, network.named_parameters())
        self.clip_norm = recipe.optimizer.clip_norm or math.inf
        self.average = WeightAverage(network, recipe.run.ema_decay)
        self.disparity_loss = PyramidLoss(network.max_disparity)

    def step(self, volumes: list[Tensor], truth: Truth, stage: StageSpec) -> tuple[float, float]:
        """Take a step on matching costs [B, D_s, h, w], fine to coarse; returns the loss and the EPE."""
        scores: list[Tensor] = self.aggregation(volumes)
        disparities = [self.network.regression(volume) for volume in reversed(scores)]  # coarse to fine
        loss = self.disparity_loss(disparities, truth) + stage.score_weight * score_loss(scores, truth)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.aggregation.parameters(), self.clip_norm)
        if bool(torch.isfinite(loss) & torch.isfinite(norm)):
            self.optimizer.step()
            self.average.update(self.network)
        self.optimizer.zero_grad(set_to_none=True)
        rows, columns = truth.disparity.shape[1:]
        full = resize_disparity(disparities[-1].detach(), (rows, columns))
        return float(loss.detach()), end_point_error(full, truth.disparity, self.network.max_disparity)

    def save(self, folder: Path, step: int) -> None:
        """Write a checkpoint from which `resume` continues."""
        state = {"optimizer": self.optimizer.state_dict(), "average_updates": self.average.updates}
        weights = self.network.state_dict()
        save_checkpoint(folder, TrainingState(self.name, step, math.nan, weights, self.average.state, state))

    def resume(self, path: Path) -> None:
        """Continue from a checkpoint."""
        saved = load_checkpoint(path, self.name)
        self.network.load_state_dict(saved.weights)
        self.optimizer.load_state_dict(saved.state["optimizer"])
        self.average.load(saved.average, saved.state["average_updates"])


@dataclass(frozen=True)
class AblationFolder:
    """Where the study keeps its files."""

    root: Path

    @property
    def features(self) -> Path:
        """The run that trains the features."""
        return self.root / "features"

    @property
    def recipe(self) -> Path:
        """The digest of the recipe, by which a folder is recognized."""
        return self.root / "recipe.txt"

    def start(self, name: str) -> Path:
        """The weights that a network starts from."""
        return self.root / "start" / f"{name}.safetensors"

    def checkpoints(self, name: str) -> Path:
        """The checkpoints of a network."""
        return self.root / "checkpoints" / name

    def weights(self, name: str) -> Path:
        """The trained weights of a network."""
        return self.root / f"{name}.safetensors"


def run_ablation(recipe: Recipe, folder: Path, console: Console, report: Report) -> dict[str, Path]:
    """Train the features, then the four networks on them; continues where an earlier call stopped.

    Args:
        recipe: Of AANet with two stages, which train "features" and "aggregation" for a number of steps.
        folder: Receives the run of the features, checkpoints and the weights.
        console: For messages of the first stage.
        report: Called after every step of the second stage.

    Returns:
        The weight files by network.
    """
    check_recipe(recipe)
    files = AblationFolder(folder)
    _refuse_another_study(recipe, files)
    weights = {name: files.weights(name) for name in NETWORKS}
    if all(path.is_file() for path in weights.values()):
        return weights
    if not all(files.start(name).is_file() for name in NETWORKS):
        _train_features(recipe, files, console)
    if recipe.run.threads:
        torch.set_num_threads(recipe.run.threads)
    candidates = [Candidate(checkpoint.load(files.start(name)), recipe) for name in NETWORKS]
    _train_aggregation(recipe, candidates, files, report)
    facts = {"trained_on": "synthetic", "recipe_digest": recipe.digest(), "steps": recipe.stage[1].steps}
    for each in candidates:
        checkpoint.save(without_training_heads(each.network, each.average.state), weights[each.name], facts)
    return weights


def check_recipe(recipe: Recipe) -> None:
    """Raise an error unless the recipe has the two stages of the study."""
    trained = [stage.trains for stage in recipe.stage]
    if recipe.network.name != "aanet" or trained != ["features", "aggregation"]:
        raise InputError(
            "The recipe of an ablation trains aanet in two stages, 'features' and 'aggregation'; "
            f"this one trains {recipe.network.name} in {', '.join(map(repr, trained))}."
        )
    if recipe.stage[1].unit != "steps" or recipe.stage[1].accumulate != 1:
        raise InputError(
            "The stage 'aggregation' of an ablation needs a number of 'steps', and no 'accumulate'."
        )
    if not recipe.run.ema_decay:
        raise InputError("The recipe of an ablation needs run.ema_decay.")


def _refuse_another_study(recipe: Recipe, files: AblationFolder) -> None:
    """Note the recipe in a new folder; raise an error if the folder was made with another one."""
    if not files.recipe.exists():
        files.root.mkdir(parents=True, exist_ok=True)
        with atomic_path(files.recipe) as temporary:
            temporary.write_text(recipe.digest(), encoding="utf-8")
    elif files.recipe.read_text(encoding="utf-8") != recipe.digest():
        raise InputError(f"{files.root} has a study with another recipe; choose another folder.")


def _train_features(recipe: Recipe, files: AblationFolder, console: Console) -> None:
    """Train the features to match, and write the networks that start from them."""
    trainer = Trainer(replace(recipe, stage=recipe.stage[:1]), files.features, console)
    if checkpoints(files.features / "checkpoints"):
        trainer.resume(files.features)
    if trainer.run() is None:
        raise InputError("The study was stopped; the same command continues it.")
    assert trainer.matching_loss is not None
    for name in NETWORKS:
        network = zoo.build(
            name,
            max_disparity=recipe.network.max_disparity,
            training_heads=True,
            initialization="matching",
            seed=recipe.seed,
        )
        network.features.load_state_dict(trainer.network.features.state_dict())
        stages.fold_temperature(network, trainer.matching_loss)
        files.start(name).parent.mkdir(exist_ok=True)
        checkpoint.save(network, files.start(name))


def _train_aggregation(
    recipe: Recipe, candidates: list[Candidate], files: AblationFolder, report: Report
) -> None:
    stage = recipe.stage[1]
    steps = round(stage.length)
    done = _resume(candidates, files)
    progress = Progress(steps=done, pairs=done * stage.batch)
    stopping = False

    def stop() -> None:
        nonlocal stopping
        stopping = True

    with environment.on_stop_signal(stop):
        pairs = _batches(recipe, progress.pairs)
        while progress.steps < steps and not stopping:
            rate = progress.learning_rate(stage)
            volumes, truth = _matching_costs(candidates[0].network, next(pairs))
            results = {}
            for each in candidates:
                set_learning_rate(each.optimizer, rate)
                results[each.name] = each.step(volumes[: each.aggregation.input_scales], truth, stage)
            progress.steps += 1
            report(progress.steps, results)
            if progress.steps % recipe.run.log_steps == 0 or stopping or progress.steps == steps:
                for each in candidates:
                    each.save(files.checkpoints(each.name), progress.steps)
    if stopping:
        raise InputError(f"The study was stopped after step {progress.steps}; the same command continues it.")


def _resume(candidates: list[Candidate], files: AblationFolder) -> int:
    """Continue all networks from the newest step that they have in common; returns it."""
    saved = [{path.name: path for path in checkpoints(files.checkpoints(each.name))} for each in candidates]
    for name in sorted(set.intersection(*map(set, saved)), reverse=True):
        try:
            for each, paths in zip(candidates, saved, strict=True):
                each.resume(paths[name])
        except ReadError:
            continue
        return int(name.rpartition("-")[2])
    return 0


def _batches(recipe: Recipe, start: int) -> Iterator[batches.StereoBatch]:
    """Yield the batches of the second stage from its pair `start` on."""
    stage, seed = recipe.stage[1], recipe.seed + BATCH_SEED
    source = batches.open_stages(recipe)[1]
    loader = batches.make_loader(
        batches.AugmentedPairs(source, batches.make_augmentation(recipe.augmentation, stage.crop), seed),
        batches.PairStream(len(source), seed, batches.Share(start, stage.batch)),
        recipe.run.workers,
    )
    for batch in loader:
        if isinstance(batch, AanetError):
            raise batch
        yield batch


@torch.no_grad()
def _matching_costs(network: StereoNetwork, batch: batches.StereoBatch) -> tuple[list[Tensor], Truth]:
    """The raw matching costs of a batch [B, D_s, h, w], fine to coarse, which all networks share."""
    left, right = (
        normalize(image.float() / 255).contiguous(memory_format=torch.channels_last)
        for image in (batch.left, batch.right)
    )
    return network.cost_volumes(network.extract(left, right)), batch.truth
