"""A recipe: the complete configuration of a training run, read from TOML."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from aanet.errors import InputError, ReadError
from aanet.inference.spec import MAX_DISPARITY
from aanet.io.files import MEGABYTE, read_bytes
from aanet.io.headers import MAX_SIDE
from aanet.io.toml import TomlError, loads
from aanet.training.bundled_recipes import find
from aanet.training.schema import Amount, Count, Positive, Range, Share, build, closest, shown

MAX_RECIPE_BYTES = MEGABYTE
MAX_EXTENSIONS = 20
MAX_NAME = 200  # characters of the name of another recipe

SearchRange = Annotated[int, Range(1, MAX_DISPARITY)]
Side = Annotated[int, Range(1, MAX_SIDE)]  # of an image, in pixels
Processes = Annotated[int, Range(0, 1024)]
Pairs = Annotated[int, Range(0, 65536)]
Octaves = Annotated[float, Range(-4, 4)]
Decay = Annotated[float, Range(0, 0.999999)]
Unit = Literal["epochs", "steps", "minutes"]
Regression = Literal["soft_argmin", "peak"]


@dataclass(frozen=True)
class TrainedNetworkSpec:
    """The network to train and its initial weights."""

    name: str  # one of `aanet models`
    max_disparity: SearchRange = 192  # disparities are below this number of pixels
    # As in the paper; the aggregation as the identity; or features pretrained on ImageNet (AANet-Fast).
    initialization: Literal["paper", "matching", "pretrained"] = "paper"
    # Equation 7, or over the highest peak only; default: as in `start_from`, else the network's default.
    regression: Regression | None = None
    start_from: str = ""  # a weight file or the name of bundled weights; empty = from scratch


@dataclass(frozen=True)
class DataSpec:
    """One dataset; the keys from `length` on apply to the synthetic world only."""

    name: str  # a dataset of `aanet data check`, or "synthetic"
    root: str = ""  # the folder of the dataset
    split: str | None = None  # default: the dataset's first split
    pseudo_labels: bool = False  # whether to read the output of `aanet pseudo-label`
    weight: Amount | None = None  # share in a mixture; without weights the datasets are concatenated
    length: Annotated[int, Range(1, 10_000_000)] = 1_000_000  # scenes in an epoch, whose order is in memory
    size: tuple[Side, Side] | None = None  # height and width of a scene; default: as the stage says
    textures: str = ""  # a folder of photographs; empty = procedural textures
    world_seed: Count = 0  # another seed gives other scenes
    kinds: dict[str, Amount] | None = None  # relative frequency of each kind of scene; default: the world's


@dataclass(frozen=True)
class AugmentationSpec:
    """Augmentation as in the paper by default; the other options are disabled by default."""

    color: bool = True  # whether to change brightness, contrast, gamma, hue and saturation
    vertical_flip: Share = 0.5  # probability of a pair upside down
    asymmetric_color: Share = 0.0  # probability of different color changes for the two views
    erase: Share = 0.0  # probability of erased patches in the right view
    erase_px: tuple[Side, Side] = (40, 90)  # smallest and largest side
    erase_other: Share = 0.0  # share of patches filled with another region instead of the mean color
    log2_scale: tuple[Octaves, Octaves] = (0.0, 0.0)  # smallest and largest zoom; 1 is twice the size
    log2_stretch: Annotated[float, Range(0, 4)] = 0.0  # maximum of an additional zoom of the width
    vertical_shift: Share = 0.0  # probability of a vertical shift of the right view
    vertical_shift_px: Amount = 0.5  # maximum
    rotation_deg: Annotated[float, Range(0, 45)] = 0.0  # maximum, of the right view, with the vertical shift

    def __post_init__(self) -> None:
        for name in ("erase_px", "log2_scale"):
            smallest, largest = getattr(self, name)
            if smallest > largest:
                values = f"{smallest}, {largest}"
                raise InputError(
                    f"'augmentation': {name!r} must have the smallest value first; it is {values}."
                )


@dataclass(frozen=True)
class OptimizerSpec:
    """The optimizer; Adam, as in the paper, by default."""

    name: Literal["adam", "adamw", "muon"] = "adam"  # Muon orthogonalizes the momentum of every kernel
    betas: tuple[Decay, Decay] = (0.9, 0.999)  # decay of the averages of gradients and of their squares
    weight_decay: Amount = 1e-4  # 0 = none
    offset_factor: Amount = 0.1  # of the learning rate, for offset and mask predictors
    backbone_factor: Amount = 1.0  # of the learning rate, for a pretrained backbone
    clip_norm: Amount = 0.0  # maximum gradient norm; 0 = no clipping


@dataclass(frozen=True)
class StageSpec:
    """A stage of training with its own trained parts, crop, batch size, learning rate and length.

    Exactly one of `epochs`, `steps` and `minutes` gives the length; `milestones` are in the same unit.
    """

    crop: tuple[Side, Side]  # height and width
    batch: Pairs  # pairs per optimizer step, over all processes
    learning_rate: float  # the highest one of the schedule
    name: str = "training"  # in the log, and for `--set stage.NAME.KEY=VALUE`
    trains: Literal["features", "aggregation", "all"] = "all"  # "aggregation": without the refinement
    # All predictions (equation 9); the last one only; or each on its own grid, for AANet-Fast.
    loss: Literal["pyramid", "finest", "cells"] = "pyramid"
    matching_weight: Amount = 0.0  # weight of the matching loss of raw features
    matching_until: Share = 1.0  # share of the stage after which the matching loss is dropped
    score_weight: Amount = 0.0  # weight of the cross-entropy of aggregated scores
    accumulate: Pairs = 1  # number of parts that a batch is split into, to save memory
    schedule: Literal["constant", "milestones", "cosine", "one_cycle"] = "constant"  # of the learning rate
    milestones: tuple[Amount, ...] = ()  # when the learning rate is multiplied by `factor`
    factor: Amount = 0.5  # of the learning rate at each milestone
    warmup_steps: Count = 0  # during which the learning rate rises from 0
    frozen_batch_norm: bool = False  # whether to keep the running statistics, for small batches
    keep_pretrained: bool = False  # whether to freeze slow layers of a pretrained backbone
    epochs: Amount | None = None  # length of the stage in passes over the data
    steps: Count | None = None  # length in optimizer steps
    minutes: Amount | None = None  # length in minutes of training time
    scene_disparity: SearchRange | None = None  # maximum in synthetic scenes; default: the network's
    scene_size: tuple[Side, Side] | None = None  # height and width of synthetic scenes; default: the crop's

    def __post_init__(self) -> None:
        where = f"stage {shown(self.name)}"
        if sum(length is not None for length in (self.epochs, self.steps, self.minutes)) != 1:
            raise InputError(f"{where} must have exactly one of 'epochs', 'steps' and 'minutes'.")
        if self.batch < 1 or self.accumulate < 1 or self.batch % self.accumulate:
            raise InputError(
                f"{where}: 'batch' must be a positive multiple of 'accumulate'; "
                f"they are {self.batch} and {self.accumulate}."
            )
        if not 0 < self.learning_rate < float("inf"):
            raise InputError(f"{where}: 'learning_rate' must be positive; it is {self.learning_rate}.")
        if self.trains == "features" and self.score_weight:
            raise InputError(
                f"{where}: 'score_weight' needs aggregation scores, which 'features' alone do not have."
            )
        if (self.schedule == "milestones") != bool(self.milestones):
            raise InputError(f"{where}: 'milestones' must be given exactly if schedule = \"milestones\".")

    @property
    def unit(self) -> Unit:
        """The unit of the stage's length and milestones."""
        if self.epochs is not None:
            return "epochs"
        return "steps" if self.steps is not None else "minutes"

    @property
    def length(self) -> float:
        """The stage's length in its unit."""
        return float(getattr(self, self.unit))


@dataclass(frozen=True)
class ValidationSpec:
    """Held-out datasets that are scored periodically."""

    data: tuple[DataSpec, ...] = ()
    every_minutes: Amount = 30.0  # between two validations
    limit: Count = 0  # use only the first pairs of each set; 0 = all


@dataclass(frozen=True)
class RunSpec:
    """How the run is executed; only precision and EMA affect the resulting weights."""

    precision: Literal["32-true", "bf16-mixed"] = "32-true"  # float32, or autocast to bf16
    ema_decay: Share = 0.0  # exponential moving average of the weights; 0 = off
    accelerator: Literal["auto", "cpu", "cuda", "mps"] = "auto"  # auto: a GPU if there is one
    threads: Processes = 0  # of the training process; 0 = PyTorch's default
    workers: Processes = 1  # processes that prepare pairs, for each training process
    checkpoint_minutes: Amount = 10.0  # between two checkpoints
    log_steps: Positive = 50  # between two lines of the log
    picture_steps: Count = 1000  # between two pictures for TensorBoard; 0 = no pictures


@dataclass(frozen=True)
class Recipe:
    """The configuration of a training run."""

    network: TrainedNetworkSpec
    data: tuple[DataSpec, ...]
    stage: tuple[StageSpec, ...]
    description: str = field(default="", compare=False)  # one line, for `aanet train --list`
    seed: Count = 0  # of initial weights, order of the pairs and augmentation
    augmentation: AugmentationSpec = field(default_factory=AugmentationSpec)
    optimizer: OptimizerSpec = field(default_factory=OptimizerSpec)
    validation: ValidationSpec = field(default_factory=ValidationSpec)
    run: RunSpec = field(default_factory=RunSpec)

    def __post_init__(self) -> None:
        if not self.stage:
            raise InputError("a recipe needs at least one [[stage]].")
        if not self.data:
            raise InputError("a recipe needs at least one [[data]].")

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for the manifest."""
        return dataclasses.asdict(self)

    def digest(self) -> str:
        """Return a hash of all values but the description."""
        values = {key: value for key, value in self.as_dict().items() if key != "description"}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def load_recipe(source: Path | str, overrides: list[str] | None = None) -> Recipe:
    """Read a recipe and apply overrides.

    Args:
        source: A TOML file, or the name of a bundled recipe, such as `synthetic-cpu`.
        overrides: `key=value` with dotted keys, such as `stage.0.batch=4`.
    """
    path = find(source)
    table = read_table(path)
    for override in overrides or []:
        apply_override(table, override)
    return build(Recipe, table, path.name)


def read_table(path: Path, extended_by: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Parse a recipe.

    `extends = "other.toml"` inherits all but the description from a recipe in the same folder, and
    `extends = "synthetic-cpu"` from a bundled one.
    """
    if len(extended_by) == MAX_EXTENSIONS:
        raise ReadError(f"{extended_by[0]} extends more than {MAX_EXTENSIONS} recipes, or itself.")
    content = read_bytes(path, "a recipe", MAX_RECIPE_BYTES)
    try:
        table = loads(content.decode("utf-8-sig"))
    except (TomlError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ReadError(f"{path} is not valid TOML: {reason}.") from error
    base = table.pop("extends", None)
    if base is None:
        return table
    if not isinstance(base, str) or len(base) > MAX_NAME:
        raise ReadError(f"{path}: 'extends' must be the name of a recipe; it is {shown(base)}.")
    inherited = read_table(find(base, path.parent), (*extended_by, path))
    inherited.pop("description", None)
    return merge(inherited, table)


def merge(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return `base` updated by `changes`: tables are merged, everything else is replaced."""
    merged = dict(base)
    for key, value in changes.items():
        both_tables = isinstance(value, dict) and isinstance(base.get(key), dict)
        merged[key] = merge(base[key], value) if both_tables else value
    return merged


def apply_override(table: dict[str, Any], override: str) -> None:
    """Change one value of a parsed recipe; list entries are addressed by index or by name."""
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise InputError(f"An override must have the form key=value; got {override!r}.")
    *parents, last = key.strip().split(".")
    target: Any = table
    for part in parents:
        target = _descend(target, part, override)
    if not isinstance(target, dict):
        raise InputError(f"{override!r}: {'.'.join(parents)!r} is not a table of values.")
    target[last] = _parse(text.strip())


def _descend(target: Any, part: str, override: str) -> Any:
    if isinstance(target, dict):
        return target.setdefault(part, {})
    if isinstance(target, list):
        names = [str(entry.get("name", "")) if isinstance(entry, dict) else "" for entry in target]
        if part in names:
            return target[names.index(part)]
        numbers = [str(number) for number in range(len(target))]
        if part in numbers:
            return target[int(part)]
        raise InputError(f"{override!r}: there is no entry {part!r}; {closest(part, numbers + names)}.")
    raise InputError(f"{override!r}: {part!r} is not a key, because its parent is the value {target!r}.")


def _parse(text: str) -> Any:
    """Parse a TOML value; anything else is a string, so that no quotes are needed on the command line."""
    try:
        return loads(f"value = {text}")["value"]
    except TomlError:
        return text
