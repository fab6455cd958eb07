"""Batches from datasets: the same pairs in the same order for any number of workers or interruptions."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from aanet.data import transforms
from aanet.data.datasets import Mixed, PairSource, StereoDataset, dataset_class, open_dataset
from aanet.data.sample import StereoSample
from aanet.errors import AanetError, InputError, ReadError, UnsupportedError
from aanet.synthetic import SyntheticWorld, prepare_worker
from aanet.training.losses import Truth
from aanet.training.recipe import AugmentationSpec, DataSpec, Recipe, StageSpec

# An epoch and the index of a pair, which together seed its augmentation.
Draw = tuple[int, int]
STOP_GRACE_SECONDS = 60  # a worker keeps running after SIGTERM, for a last step and a checkpoint


@dataclass(frozen=True)
class StereoBatch:
    """Images [B, 3, H, W] as uint8, and their ground truth."""

    names: list[str]
    left: Tensor
    right: Tensor
    truth: Truth


def open_source(spec: DataSpec, size: tuple[int, int], max_disparity: int) -> PairSource:
    """Open the dataset of a recipe; size and maximum disparity apply to synthetic scenes only."""
    if spec.name == "synthetic":
        return SyntheticWorld(
            size=spec.size or size,
            max_disparity=max_disparity,
            seed=spec.world_seed,
            textures=Path(spec.textures) if spec.textures else None,
            length=spec.length,
            kinds=spec.kinds,
        )
    dataset_class(spec.name)  # or an error that lists the names
    if not spec.root:
        raise InputError(f"The recipe does not say where {spec.name} is; give its folder as 'root'.")
    dataset = open_dataset(spec.name, Path(spec.root), split=spec.split, pseudo_labels=spec.pseudo_labels)
    if spec.pseudo_labels:
        _require_pseudo_labels(dataset)
    return dataset


def _require_pseudo_labels(dataset: StereoDataset) -> None:
    missing = [pair.pseudo for pair in dataset.pairs if not pair.pseudo.is_file()]
    if missing:
        raise ReadError(
            f"{len(missing)} of {len(dataset)} pairs of {dataset.name} have no pseudo ground truth, for "
            f"example {missing[0]}; create it with `aanet pseudo-label`."
        )


def open_mixture(specs: Sequence[DataSpec], size: tuple[int, int], max_disparity: int) -> Mixed:
    """Open all datasets of a recipe as a mixture, weighted if they have weights."""
    sources = [open_source(spec, size, max_disparity) for spec in specs]
    weights = [spec.weight for spec in specs if spec.weight is not None]
    if weights and len(weights) != len(specs):
        raise InputError("Either all [[data]] entries of a recipe must have a weight, or none of them.")
    return Mixed(sources, weights or None)


def open_stages(recipe: Recipe) -> list[Mixed]:
    """Open the data of every stage; a first pair that cannot be trained on is an error."""
    opened = []
    for stage in recipe.stage:
        max_disparity = stage.scene_disparity or recipe.network.max_disparity
        mixed = open_mixture(recipe.data, stage.scene_size or stage.crop, max_disparity)
        for source in mixed.datasets:
            if isinstance(source, SyntheticWorld):
                transforms.require_size(source.name, source.size, stage.crop)
            else:
                first = source[0]
                _require_truth(first)
                transforms.require_size(first.name, first.left.shape, stage.crop)
        opened.append(mixed)
    return opened


def _require_truth(sample: StereoSample) -> None:
    if sample.disparity is None and sample.pseudo_disparity is None:
        raise InputError(f"{sample.name} has no ground truth to train on.")


def pairs_per_process(stage: StageSpec, processes: int) -> int:
    """Return the pairs of one forward pass in one process."""
    parts = stage.accumulate * processes
    if stage.batch % parts:
        raise UnsupportedError(
            f"stage {stage.name!r}: a batch of {stage.batch} pairs cannot be split evenly into "
            f"{stage.accumulate} parts for each of {processes} processes."
        )
    return stage.batch // parts


def make_augmentation(spec: AugmentationSpec, crop: tuple[int, int]) -> transforms.Compose:
    """Return the transforms that a recipe enables, geometric ones first."""
    scaled = spec.log2_scale != (0.0, 0.0) or spec.log2_stretch > 0
    cut: transforms.Transform = transforms.RandomCrop(*crop)
    if scaled:
        cut = transforms.RandomScaleCrop(*crop, spec.log2_scale, spec.log2_stretch)
    steps: list[transforms.Transform] = [cut, transforms.RandomVerticalFlip(spec.vertical_flip)]
    if spec.vertical_shift:
        steps.append(
            transforms.RandomVerticalShift(spec.vertical_shift, spec.vertical_shift_px, spec.rotation_deg)
        )
    if spec.color:
        steps.append(transforms.RandomColor(spec.asymmetric_color))
    if spec.erase:
        steps.append(transforms.RandomErase(spec.erase, size_px=spec.erase_px, other=spec.erase_other))
    return transforms.Compose(steps)


class AugmentedPairs(Dataset["StereoSample | AanetError"]):
    """Pairs augmented by a generator that depends on the seed, the epoch and the pair only.

    The error of an unusable pair is returned: raised inside a worker, it would be printed as a traceback.
    """

    def __init__(self, source: PairSource, augmentation: transforms.Transform, seed: int) -> None:
        self.source, self.augmentation, self.seed = source, augmentation, seed

    def __getitem__(self, draw: Draw) -> StereoSample | AanetError:
        """Return the augmented pair, or the error that makes it unusable."""
        epoch, index = draw
        try:
            sample = self.source[index]
            _require_truth(sample)
            return self.augmentation(sample, np.random.default_rng((self.seed, epoch, index)))
        except AanetError as error:
            return error


@dataclass(frozen=True)
class Share:
    """The pairs of the stream that one process trains on."""

    start: int = 0  # pairs that all processes together have already used
    pairs: int = 1  # in each batch of one process
    rank: int = 0
    world_size: int = 1


class PairStream(Sampler[list[Draw]]):
    """An infinite sampler that shuffles every epoch and can start at any position."""

    def __init__(self, epoch_pairs: int, seed: int, share: Share) -> None:
        self.epoch_pairs, self.seed, self.share = epoch_pairs, seed, share

    def __iter__(self) -> Iterator[list[Draw]]:
        pairs = self.share.pairs
        position = self.share.start + self.share.rank * pairs
        epoch, order = -1, np.empty(0, np.int64)
        while True:
            draws: list[Draw] = []
            for at in range(position, position + pairs):
                if at // self.epoch_pairs != epoch:
                    epoch = at // self.epoch_pairs
                    order = np.random.default_rng((self.seed, epoch)).permutation(self.epoch_pairs)
                draws.append((epoch, int(order[at % self.epoch_pairs])))
            yield draws
            position += pairs * self.share.world_size


def collate(samples: list[StereoSample | AanetError]) -> StereoBatch | AanetError:
    """Stack samples of equal size, or return the first error among them."""
    for sample in samples:
        if isinstance(sample, AanetError):
            return sample
    pairs = [sample for sample in samples if isinstance(sample, StereoSample)]
    left, right = (
        torch.from_numpy(np.stack([image.transpose(2, 0, 1) for image in images]))
        for images in ([pair.left for pair in pairs], [pair.right for pair in pairs])
    )
    return StereoBatch([pair.name for pair in pairs], left, right, collate_truth(pairs))


def collate_truth(pairs: list[StereoSample]) -> Truth:
    """Stack the ground truth; unknown disparities become 0 and unknown visibility True."""

    def disparity(pair: StereoSample) -> NDArray[np.float32]:
        if pair.disparity is None:
            return np.zeros(pair.left.shape[:2], np.float32)
        return pair.disparity if pair.valid is None else np.where(pair.valid, pair.disparity, 0)

    empty = [np.zeros(pair.left.shape[:2], np.float32) for pair in pairs]
    pseudo = [
        e if p.pseudo_disparity is None else p.pseudo_disparity for p, e in zip(pairs, empty, strict=True)
    ]
    visible = [e == 0 if p.visible is None else p.visible for p, e in zip(pairs, empty, strict=True)]
    return Truth(
        disparity=torch.from_numpy(np.stack([disparity(pair) for pair in pairs]).astype(np.float32)),
        visible=torch.from_numpy(np.stack(visible)),
        pseudo=torch.from_numpy(np.stack(pseudo).astype(np.float32)),
    )


def make_loader(pairs: AugmentedPairs, stream: PairStream, workers: int) -> DataLoader[Any]:
    """Return a loader of the stream's batches; each batch is prefetched by one worker."""
    return DataLoader(
        pairs,
        batch_sampler=stream,
        num_workers=workers,
        collate_fn=collate,
        worker_init_fn=_start_worker if workers else None,
        prefetch_factor=2 if workers else None,
    )


def _start_worker(number: int) -> None:
    prepare_worker(number)
    # Both signals are often sent to the whole process group, but are meant for the training process, which
    # writes a checkpoint and then stops its workers. After an error it may stop them by SIGTERM and wait.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":  # where processes are ended without a signal
        signal.signal(signal.SIGTERM, lambda _signal, _frame: signal.alarm(STOP_GRACE_SECONDS))
