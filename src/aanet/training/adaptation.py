"""Adaptation of trained weights to pairs without ground truth, by pseudo ground truth on part of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Literal

import cv2
import numpy as np
from rich.console import Console

from aanet.data.datasets import Folder, PairSource
from aanet.engines.torch import TorchEngine
from aanet.errors import InputError
from aanet.evaluation.without_truth import Consistency, compare
from aanet.inference.hints import InferenceHints
from aanet.inference.size_rule import SizeRule
from aanet.io.disparity import write_disparity
from aanet.io.images import AnyImage, as_rgb8, write_image
from aanet.matcher import StereoMatcher
from aanet.models.network import StereoNetwork
from aanet.models.refinement import ConvexRefinement
from aanet.models.weights import checkpoint
from aanet.synthetic import SyntheticWorld
from aanet.training.pseudo_label import reliable
from aanet.training.recipe import (
    AugmentationSpec,
    DataSpec,
    OptimizerSpec,
    Recipe,
    RunSpec,
    StageSpec,
    TrainedNetworkSpec,
)
from aanet.training.reporting import Report, Reporter
from aanet.training.stages import matching_loss_of
from aanet.training.trainer import Trainer
from aanet.training.transfer import without_training_heads
from aanet.training.validation import ValidationSet, validate
from aanet.typing import Image

CROP = (288, 448)
BATCH = 2  # pairs, on average one of the user and one of the procedural world
LEARNING_RATE = 3e-4  # a fifth of that in the recipes of the bundled weights
SCENE_MARGIN = 1.2  # a scene is larger than a crop of it by this factor
WORLD_SEED, HELD_OUT_WORLD_SEED = 10_000, 20_000  # to which the seed is added
PROCEDURAL_SCENES = 8  # held out, to see what was forgotten
MAX_FORGOTTEN = 0.1  # largest relative growth of the error in them


@dataclass(frozen=True)
class LabelRule:
    """Which predictions are pseudo ground truth."""

    max_difference_px: float = 1.0
    min_confidence: float = 0.9


@dataclass(frozen=True)
class FineTuning:
    """How the weights are trained; exactly one of `minutes` and `steps` is given."""

    minutes: float | None = 10.0
    steps: int | None = None
    seed: int = 0
    textures: Path | None = None  # photographs for the procedural world
    threads: int = 0  # 0 = PyTorch's default


@dataclass(frozen=True)
class PreparedPairs:
    """The user's pairs in a folder, at the size at which they are matched."""

    training: Path
    held_out: Path
    training_pairs: int
    held_out_pairs: int
    labeled: float  # share of the pixels of the training pairs
    smallest: tuple[int, int]  # height and width that every training pair has at least
    warnings: tuple[str, ...]  # about the pairs, from the checks that are made before matching


@dataclass(frozen=True)
class Change:
    """A figure before and after."""

    before: float
    after: float


@dataclass(frozen=True)
class Scores:
    """What the adaptation did to pairs and scenes that it was not trained on.

    Attributes:
        agreement: Share of the pixels of the pairs left out whose left and right disparities agree.
        photometric: Mean photometric error of the pairs left out.
        procedural_epe: Error in pixels on held-out scenes of the procedural world.
    """

    agreement: Change
    photometric: Change
    procedural_epe: Change

    @property
    def shortcomings(self) -> list[str]:
        """Why the weights from before are to be preferred, in words; empty if the new ones are better."""
        found = []
        if self.agreement.after <= self.agreement.before:
            found.append("left and right do not agree more often")
        if self.photometric.after >= self.photometric.before:
            found.append("the photometric error is not lower")
        if self.procedural_epe.after > (1 + MAX_FORGOTTEN) * self.procedural_epe.before:
            found.append("too much of the procedural world is forgotten")
        return found

    def as_dict(self) -> dict[str, dict[str, float]]:
        """Return plain values, for JSON."""
        return asdict(self)


def choose_held_out(count: int, share: float, seed: int, in_order: bool = False) -> set[int]:
    """Choose which of `count` pairs are left out of the training: at least one, and not all.

    Args:
        count: The number of pairs, at least two.
        share: The share to leave out.
        seed: Of the choice.
        in_order: Take the last ones, because pairs that follow each other, as in a video, are alike.
    """
    held_out = min(max(round(share * count), 1), count - 1)
    if in_order:
        return set(range(count - held_out, count))
    return set(np.random.default_rng(seed).permutation(count)[:held_out].tolist())


def prepare_pairs(
    pairs: Iterable[tuple[str, AnyImage, AnyImage]],
    held_out: set[int],
    labeler: StereoMatcher,
    scale_for: Callable[[int], float],
    rule: LabelRule,
    folder: Path,
) -> PreparedPairs:
    """Write the pairs into a folder, and the pseudo ground truth of those to train on.

    Args:
        pairs: Name, left and right image of each pair.
        held_out: The places of the pairs to leave out of the training.
        labeler: Predicts the pseudo ground truth.
        scale_for: The scale at which the trained network matches images of a width.
        rule: Which predictions to take.
        folder: Where to write.
    """
    training, left_out = folder / "training", folder / "held-out"
    kept: list[float] = []
    sizes: list[tuple[int, int]] = []
    warnings: list[str] = []
    for place, (name, *images) in enumerate(pairs):
        into = left_out if place in held_out else training
        try:
            left, right = (_resized(as_rgb8(image), scale_for(image.shape[1])) for image in images)
            if left.shape != right.shape:
                raise InputError("its images differ in size.")
            if into == training:
                result = labeler(left, right, check=True)
                labels = reliable(result, rule.max_difference_px, rule.min_confidence)
                write_disparity(into / f"disparity/{place:06d}.pfm", labels)
                kept.append(float(np.isfinite(labels).mean()))
                sizes.append((left.shape[0], left.shape[1]))
                warnings += [f"{name}: {warning}" for warning in result.warnings]
        except InputError as error:
            raise InputError(f"The pair {name} cannot be used: {error}") from error
        write_image(into / f"left/{place:06d}.png", left)
        write_image(into / f"right/{place:06d}.png", right)
    if not kept or max(kept) == 0:
        raise InputError(
            "There is nothing to train on: no pixel passes the left-right check with a confidence of at "
            f"least {rule.min_confidence:g}; check that the pairs are rectified and not swapped."
        )
    smallest = (min(height for height, _ in sizes), min(width for _, width in sizes))
    return PreparedPairs(training, left_out, len(kept), len(held_out), fmean(kept), smallest, tuple(warnings))


def _resized(image: Image, scale: float) -> Image:
    if scale == 1:
        return image
    size = (max(round(image.shape[1] * scale), 1), max(round(image.shape[0] * scale), 1))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_LINEAR), np.uint8)


def adaptation_recipe(
    start: checkpoint.Checkpoint, weights: Path, pairs: PreparedPairs, tuning: FineTuning
) -> Recipe:
    """Half of the training pairs are the user's, with pseudo ground truth; half are procedural scenes.

    Args:
        start: The weights to start from.
        weights: Their file.
        pairs: The user's pairs.
        tuning: How to train.
    """
    network, architecture = start.network(), start.architecture
    crop = (
        _side(network.sizes, CROP[0], pairs.smallest[0]),
        _side(network.sizes, CROP[1], pairs.smallest[1]),
    )
    scene = (round(SCENE_MARGIN * crop[0]), round(SCENE_MARGIN * crop[1]))
    own = DataSpec("folder", root=str(pairs.training), weight=1.0)
    procedural = DataSpec(
        "synthetic",
        weight=1.0,
        length=100_000,
        size=scene,
        textures=str(tuning.textures or ""),
        world_seed=WORLD_SEED + tuning.seed,
    )
    stage = StageSpec(
        crop=crop,
        batch=BATCH,
        learning_rate=LEARNING_RATE,
        name="adaptation",
        loss=loss_of(network),
        # The gradient of a regression from the highest peak does not reach other peaks.
        score_weight=10.0 if architecture.regression == "peak" and matching_loss_of(network) else 0.0,
        schedule="cosine",
        warmup_steps=20,
        frozen_batch_norm=True,
        keep_pretrained=True,
        steps=tuning.steps,
        minutes=tuning.minutes,
        scene_disparity=min(architecture.max_disparity, max(8, crop[1] * 3 // 8)),
    )
    return Recipe(
        network=TrainedNetworkSpec(
            architecture.builder, max_disparity=architecture.max_disparity, start_from=str(weights)
        ),
        data=(own, procedural),
        stage=(stage,),
        seed=tuning.seed,
        augmentation=AugmentationSpec(
            vertical_flip=0.1,
            asymmetric_color=0.4,
            erase=0.4,
            erase_px=(20, 70),
            erase_other=0.5,
            log2_scale=(-0.2, 0.3),
            log2_stretch=0.1,
            vertical_shift=0.25,
            vertical_shift_px=1.0,
        ),
        optimizer=OptimizerSpec("muon", weight_decay=0.02, backbone_factor=0.3, clip_norm=20.0),
        run=RunSpec(threads=tuning.threads, picture_steps=0),
    )


def _side(sizes: SizeRule, wanted: int, available: int) -> int:
    """The largest side of a crop that the network takes and the images have; they are padded if need be."""
    side = min(wanted, available)
    return max(side - side % sizes.multiple, sizes.round_up(1))


def loss_of(network: StereoNetwork) -> Literal["pyramid", "finest", "cells"]:
    """The loss with which weights without training heads, or with them, can be fine-tuned."""
    if isinstance(network.refinement, ConvexRefinement):
        return "cells"
    # Heads that the weights lack are random; their losses would disturb the rest of the network.
    return "pyramid" if network.architecture.training_heads else "finest"


class _Observer(Reporter):
    """Tells the completed share of the training instead of printing reports."""

    def __init__(self, observe: Callable[[float], None]) -> None:
        super().__init__(None, Console(quiet=True))
        self.observe = observe

    def progress(self, report: Report) -> None:
        """Tell the share."""
        self.observe(report.share)


def fine_tune(recipe: Recipe, observe: Callable[[float], None]) -> tuple[StereoNetwork, int]:
    """Train the recipe; returns the network for inference, and the number of steps.

    A signal to stop raises `KeyboardInterrupt` after the step.
    """
    trainer = Trainer(recipe, None, Console(quiet=True))
    trainer.reporter = _Observer(observe)
    trainer.run()
    if trainer.stopping:
        raise KeyboardInterrupt
    return without_training_heads(trainer.network, trainer.network.state_dict()), trainer.step


def score_pairs(
    before: StereoNetwork, after: StereoNetwork, hints: InferenceHints, held_out: Path
) -> Iterator[tuple[Consistency, Consistency]]:
    """Score every pair left out with both networks."""
    device = str(next(after.parameters()).device)
    matchers = [StereoMatcher.with_engine(TorchEngine(each, device, hints=hints)) for each in (before, after)]
    pairs = Folder(held_out)
    for index in range(len(pairs)):
        sample = pairs[index]
        # The pairs were written at the size at which they are matched.
        first, second = (
            matcher(sample.left, sample.right, scale=1.0, check=True, inspect=False) for matcher in matchers
        )
        yield compare(first, second)


def summarize(
    pairs: list[tuple[Consistency, Consistency]],
    before: StereoNetwork,
    after: StereoNetwork,
    hints: InferenceHints,
    tuning: FineTuning,
) -> Scores:
    """Average the scores of the pairs, and score both networks on held-out scenes of the procedural world."""
    world: PairSource = SyntheticWorld(
        seed=HELD_OUT_WORLD_SEED + tuning.seed, textures=tuning.textures, length=PROCEDURAL_SCENES
    )
    errors = [
        validate(network, [ValidationSet("procedural", world, 0)], hints)["procedural"]["EPE"]
        for network in (before, after)
    ]
    firsts, seconds = zip(*pairs, strict=True)
    return Scores(
        Change(fmean(each.agreement for each in firsts), fmean(each.agreement for each in seconds)),
        Change(fmean(each.photometric for each in firsts), fmean(each.photometric for each in seconds)),
        Change(*errors),
    )
