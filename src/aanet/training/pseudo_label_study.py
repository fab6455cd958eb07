"""The paper's figure 5: fine-tuning on the truth of a laser scanner, with and without pseudo ground truth.

A scanner measures the lower part of the image up to some distance. What a network predicts in the sky and in
the upper image is not trained then, unless predictions of another network are used where the scanner saw
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from aanet.data.datasets import Folder
from aanet.data.sample import StereoSample
from aanet.engines.torch import TorchEngine
from aanet.evaluation.metrics import ErrorSums, average, error_sums
from aanet.inference.hints import InferenceHints
from aanet.io.disparity import write_disparity
from aanet.io.images import write_image
from aanet.matcher import StereoMatcher
from aanet.models.network import StereoNetwork
from aanet.models.weights import checkpoint
from aanet.synthetic import SyntheticWorld
from aanet.training.adaptation import loss_of
from aanet.training.pseudo_label import write_pseudo_labels
from aanet.training.recipe import DataSpec, OptimizerSpec, Recipe, RunSpec, StageSpec, TrainedNetworkSpec
from aanet.typing import FloatMap, Image, Mask
from aanet.viz import colorize_disparity, panel

STREETS = {"street": 1.0}
SIZE, CROP = (192, 512), (192, 448)  # height and width; crops have the full height, and so an upper image
LEARNING_RATE = 1e-3  # as in the paper's fine-tuning on KITTI
MAX_DIFFERENCE_PX = 1.0  # of pseudo ground truth in the left-right check
WORLD_SEED, TEST_WORLD_SEED = 30_000, 40_000  # to which the seed is added
# A scanner as that of KITTI: it sees nothing well above the horizon, lines with gaps below it, and nothing
# farther than 80 m, where KITTI's cameras have a disparity of 5 of 1242 pixels.
TOP_SHARE = 0.4  # of the height, without any truth
LINE_STEP, POINT_STEP = 3, 2  # pixels between lines, and between the points of a line
FARTHEST = 5 / 1242  # disparity as a share of the image width
SKY_PX = 0.5  # disparities below are those of the sky, a plane at a distance of 3 km
REGIONS = ("sky", "upper", "lower")
VARIANTS = ("before", "without", "with")
TITLES = {
    "before": "before fine-tuning",
    "without": "without pseudo ground truth",
    "with": "with pseudo ground truth",
}


@dataclass(frozen=True)
class StudySize:
    """How large the study is; the defaults take about half an hour on a core."""

    pairs: int = 30
    steps: int = 150
    test_pairs: int = 20
    seed: int = 0
    textures: Path | None = None
    threads: int = 0  # 0 = PyTorch's default


@dataclass(frozen=True)
class LabelQuality:
    """Shares in percent of the pixels of the training pairs, and errors against the complete truth."""

    known: float  # pixels that the scanner saw
    labeled: float  # other pixels that have pseudo ground truth
    bad3: float  # of the labeled pixels, those that are wrong by more than 3 pixels


def scanner_points(disparity: FloatMap) -> Mask:
    """The pixels that a laser scanner would measure."""
    height, width = disparity.shape
    on_lines: Mask = np.zeros((height, width), bool)
    on_lines[int(TOP_SHARE * height) :: LINE_STEP, ::POINT_STEP] = True
    seen: Mask = on_lines & (disparity >= FARTHEST * width)
    return seen


def streets(size: StudySize, test: bool = False) -> SyntheticWorld:
    """The streets to train on, or those that are held out."""
    return SyntheticWorld(
        SIZE,
        seed=(TEST_WORLD_SEED if test else WORLD_SEED) + size.seed,
        textures=size.textures,
        length=size.test_pairs if test else size.pairs,
        kinds=STREETS,
    )


def write_pairs(world: SyntheticWorld, labeler: StereoMatcher, folder: Path) -> Iterator[LabelQuality]:
    """Write the pairs with the truth of the scanner, and pseudo ground truth; yields how good it is."""
    complete = []
    for index in range(len(world)):
        sample = world[index]
        assert sample.disparity is not None  # the world knows all
        seen = scanner_points(sample.disparity)
        write_image(folder / f"left/{index:04d}.png", sample.left)
        write_image(folder / f"right/{index:04d}.png", sample.right)
        sparse = np.where(seen, sample.disparity, np.float32(np.nan))
        write_disparity(folder / f"disparity/{index:04d}.pfm", sparse)
        complete.append(sample.disparity)
    labels = write_pseudo_labels(labeler, Folder(folder), MAX_DIFFERENCE_PX)
    labeled = Folder(folder, pseudo_labels=True)
    for index, (truth, _) in enumerate(zip(complete, labels, strict=True)):
        pseudo, seen = labeled[index].pseudo_disparity, scanner_points(truth)
        assert pseudo is not None  # just written
        used = (pseudo > 0) & ~seen
        bad3 = error_sums(pseudo, truth, used, given=used).bad(3.0)
        yield LabelQuality(100 * float(seen.mean()), 100 * float(used.mean()), bad3)


def study_recipe(
    start: checkpoint.Checkpoint,
    weights: Path,
    folder: Path,
    size: StudySize,
    pseudo_labels: bool,
) -> Recipe:
    """The same pairs, order, augmentation and steps, with or without pseudo ground truth (eq. 8)."""
    architecture = start.architecture
    return Recipe(
        network=TrainedNetworkSpec(
            architecture.builder, max_disparity=architecture.max_disparity, start_from=str(weights)
        ),
        data=(DataSpec("folder", root=str(folder), pseudo_labels=pseudo_labels),),
        stage=(
            StageSpec(
                crop=CROP,
                batch=2,
                learning_rate=LEARNING_RATE,
                name="with pseudo labels" if pseudo_labels else "without pseudo labels",
                loss=loss_of(start.network()),
                schedule="cosine",
                warmup_steps=20,
                frozen_batch_norm=True,
                keep_pretrained=True,
                steps=size.steps,
            ),
        ),
        seed=size.seed,
        optimizer=OptimizerSpec("muon", weight_decay=0.02, backbone_factor=0.3, clip_norm=20.0),
        run=RunSpec(threads=size.threads, picture_steps=0),
    )


Errors = dict[str, dict[str, ErrorSums]]  # by variant and region


@dataclass(frozen=True)
class StreetResult:
    """The predictions of all variants for one held-out street."""

    sample: StereoSample
    disparities: dict[str, FloatMap]  # by variant
    errors: Errors


def predict_streets(
    networks: Mapping[str, StereoNetwork], hints: InferenceHints, world: SyntheticWorld
) -> Iterator[StreetResult]:
    """Predict the held-out streets with every variant."""
    matchers = {
        name: StereoMatcher.with_engine(TorchEngine(network, hints=hints))
        for name, network in networks.items()
    }
    for index in range(len(world)):
        sample = world[index]
        assert sample.disparity is not None
        predicted = {
            name: matcher(sample.left, sample.right, inspect=False).disparity
            for name, matcher in matchers.items()
        }
        regions = regions_of(sample.disparity)
        errors = {
            name: {
                region: error_sums(disparity, sample.disparity, mask, given=mask)
                for region, mask in regions.items()
            }
            for name, disparity in predicted.items()
        }
        yield StreetResult(sample, predicted, errors)


def regions_of(truth: FloatMap) -> dict[str, Mask]:
    """The sky; the upper image, which the scanner does not see, without it; and the lower image."""
    upper = np.zeros(truth.shape, bool)
    upper[: int(TOP_SHARE * truth.shape[0])] = True
    sky: Mask = truth < SKY_PX
    return {"sky": sky, "upper": upper & ~sky, "lower": ~upper & ~sky}


def summarize(results: list[StreetResult]) -> dict[str, dict[str, dict[str, float]]]:
    """EPE and bad-3 by variant and region, over the pixels of all streets."""
    statistics: dict[str, Callable[[ErrorSums], float]] = {
        "epe": lambda sums: sums.epe,
        "bad3": lambda sums: sums.bad(3.0),
    }
    return {
        variant: {
            region: {
                name: average([each.errors[variant][region] for each in results], statistic, over="pixels")
                for name, statistic in statistics.items()
            }
            for region in REGIONS
        }
        for variant in VARIANTS
    }


def typical(results: list[StreetResult], count: int) -> list[StreetResult]:
    """Streets whose gain from pseudo ground truth in sky and upper image is around the median."""

    def gain(result: StreetResult) -> float:
        without, with_ = (
            result.errors[variant]["sky"] + result.errors[variant]["upper"] for variant in ("without", "with")
        )
        return without.epe - with_.epe if without.pixels else 0.0

    ranked = sorted(results, key=gain)
    first = max((len(ranked) - count) // 2, 0)
    return ranked[first : first + count]


def figure(results: list[StreetResult]) -> Image:
    """Rows of image, prediction without and with pseudo ground truth, and truth, in one color scale each."""
    pictures: list[Image] = []
    titles: list[str] = []
    for number, each in enumerate(results):
        truth = each.sample.disparity
        assert truth is not None
        top = max(float(np.percentile(truth, 99)), 1.0)
        maps = [each.disparities["without"], each.disparities["with"], truth]
        pictures += [each.sample.left, *(colorize_disparity(one, 0.0, top) for one in maps)]
        first = ["image", TITLES["without"], TITLES["with"], "truth"]
        titles += first if number == 0 else [" "] * 4
    return panel(pictures, titles, columns=4)


def mean_quality(qualities: list[LabelQuality]) -> LabelQuality:
    """Average the shares over the pairs."""
    values = {
        name: float(np.nanmean([getattr(each, name) for each in qualities])) for name in asdict(qualities[0])
    }
    return replace(qualities[0], **values)
