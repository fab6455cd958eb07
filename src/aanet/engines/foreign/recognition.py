"""Finding out how a network wants to be fed and read: try the readings on a real pair with ground truth.

A reading is right if its mean error on the Motorcycle pair at half size is below `RIGHT` pixels, and clearly
worse than the best if its error is `WORSE` times as large. Only a network that is right under one reading and
clearly worse under all others is recognized. RGB and BGR are one reading here: most networks hardly tell them
apart, and the better one is taken.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np

from aanet.data.motorcycle import motorcycle
from aanet.engines.foreign.adapter import network_inputs, read_disparity
from aanet.engines.foreign.inspection import RIGHT
from aanet.engines.foreign.readings import feedings, outputs
from aanet.engines.foreign.running import Runner
from aanet.engines.foreign.spec import ForeignSpec, ImageSpec, SizeSpec, Table
from aanet.errors import AanetError
from aanet.inference.padding import padding_for
from aanet.inference.size_rule import SizeRule
from aanet.io.images import as_rgb_float
from aanet.typing import FloatMap, Mask

WORSE = 1.5
_SCALE = 0.5
_UNKNOWN_MEMORY = 6000  # bytes per pixel, where the system does not tell
_LEAST_MEMORY = 500
_SAFETY = 1.5


@dataclass(frozen=True)
class Tried:
    """A reading with its mean error in pixels of the pair at half size; infinite if it could not be run."""

    spec: ForeignSpec
    error: float


@dataclass(frozen=True)
class Recognition:
    """The result of a trial.

    Attributes:
        tried: The readings, the best first.
        spec: The spec that was found, or None.
        problem: Why there is none, as a sentence.
        bytes_per_pixel: Peak memory of a prediction.
    """

    tried: tuple[Tried, ...]
    spec: ForeignSpec | None
    problem: str
    bytes_per_pixel: int


@dataclass(frozen=True)
class _Sample:
    left: FloatMap  # [3, H, W] in 0 … 1
    right: FloatMap
    disparity: FloatMap  # [H, W]
    valid: Mask


def recognize(runner: Runner, given: Table, name: str) -> Recognition:
    """Try all readings of a network that agree with what is given.

    Args:
        runner: The network.
        given: What is known of its spec.
        name: What to call the network.
    """
    sample, before = _sample(), _memory()
    tried: list[Tried] = []
    reasons: list[str] = []
    ways = feedings(runner.graph, given, name)
    pixels = 1
    for feeding in ways:
        other_order = {**feeding, "image": {**feeding["image"], "color": "RGB"}}
        if feeding["image"]["color"] == "BGR" and other_order in ways and not _worth_it(tried, other_order):
            continue
        try:
            found, pixels = _try(runner, feeding, given, sample)
            tried += found
        except AanetError as error:
            reasons.append(str(error))
    tried.sort(key=lambda each: each.error)
    measured = _memory() - before
    spec, problem = _choose(tried, reasons, name)
    if spec is not None:
        try:
            spec = _with_size_rule(runner, spec, given)
        except AanetError as error:
            spec, problem = None, str(error)
    return Recognition(tuple(tried), spec, problem, _bytes_per_pixel(measured, pixels))


def _worth_it(tried: list[Tried], feeding: Table) -> bool:
    """Whether another order of the colors is worth a run: only if the first one was right or close to it."""
    image = _key(ForeignSpec.from_table({**feeding, "output": {"name": "any"}}, "").image)
    errors = [each.error for each in tried if _key(each.spec.image) == image]
    return bool(errors) and min(errors) < 2 * RIGHT


def _key(image: ImageSpec) -> ImageSpec:
    return replace(image, color="RGB") if image.color == "BGR" else image


def _try(runner: Runner, feeding: Table, given: Table, sample: _Sample) -> tuple[list[Tried], int]:
    """Run the network once and read its outputs in all ways."""
    size = SizeSpec(**feeding["size"])
    probe = ForeignSpec.from_table({**feeding, "output": {"name": "any"}}, "The reading")
    height, width = sample.disparity.shape
    rule = SizeRule(size.multiple, size.minimum) if size.fixed is None else SizeRule()
    padding = padding_for(height, width, rule)
    left, right = padding.pad(sample.left), padding.pad(sample.right)
    arrays = runner(network_inputs(probe, runner.graph, left, right))
    seen = size.fixed or (left.shape[1], left.shape[2])
    found = []
    for spec in outputs(runner.graph, feeding, given, arrays, seen):
        try:
            disparity = padding.crop(read_disparity(spec, runner.graph, arrays, left.shape[1:]))
        except AanetError:
            found.append(Tried(spec, math.inf))
            continue
        error = float(np.abs(disparity - sample.disparity)[sample.valid].mean())
        found.append(Tried(spec, error if math.isfinite(error) else math.inf))
    return found, seen[0] * seen[1]


def _choose(tried: list[Tried], reasons: list[str], name: str) -> tuple[ForeignSpec | None, str]:
    """Return the only right reading, or a sentence that says what is open."""
    if not tried:
        shapes = "it has no output with the height and width of the image"
        return None, reasons[0] if reasons else f"{name} computes no disparity map: {shapes}."
    best = tried[0]
    if len(tried) == 1:
        if math.isinf(best.error):
            return None, f"The spec of {name} does not fit what the network computes."
        return best.spec, ""
    if best.error >= RIGHT:
        return None, (
            f"{name} is not recognized: of {len(tried)} readings, the best has an error of {best.error:.1f} "
            "pixels on the Motorcycle pair at half size; describe the network in a spec (--network-spec)."
        )
    close = [
        each for each in tried[1:] if each.error < WORSE * best.error and not _same_but_color(each, best)
    ]
    if close:
        return None, (
            f"{name} is not recognized: {_difference(best, close[0])} are almost equally right on the "
            f"Motorcycle pair (errors of {best.error:.2f} and {close[0].error:.2f} pixels); give "
            f"{_open_keys(best, close)} in a spec (--network-spec)."
        )
    return best.spec, ""


def _same_but_color(one: Tried, other: Tried) -> bool:
    first, second = (replace(each.spec, image=_key(each.spec.image)) for each in (one, other))
    return first == second


def _parts(spec: ForeignSpec) -> dict[str, Any]:
    table = spec.to_table()
    flat = {"input": [(each["name"], each["content"]) for each in table["input"]]}
    for part in ("image", "output"):
        flat.update({f"{part}.{key}": value for key, value in table[part].items()})
    return flat


def _open_keys(best: Tried, close: list[Tried]) -> str:
    """Return the keys in which the right readings differ, for a message."""
    first = _parts(best.spec)
    keys = dict.fromkeys(
        key
        for each in close
        for key in [*first, *_parts(each.spec)]
        if first.get(key) != _parts(each.spec).get(key) and key != "image.color"
    )
    return " and ".join(keys) or "image.color"


def _difference(one: Tried, other: Tried) -> str:
    first, second = _parts(one.spec), _parts(other.spec)
    keys = [key for key in [*first, *second] if first.get(key) != second.get(key) and key != "image.color"]
    key = keys[0] if keys else "image.color"
    return f"{key} = {first.get(key, 'none')} and {second.get(key, 'none')}"


def _with_size_rule(runner: Runner, spec: ForeignSpec, given: Table) -> ForeignSpec:
    """Check the guessed multiple at a size that is no multiple of more; double it if that fails."""
    if spec.size.fixed is not None or given.get("size"):
        return spec
    for multiple in (spec.size.multiple, 2 * spec.size.multiple):
        tried = replace(spec, size=SizeSpec(multiple, 2 * multiple))
        image = np.full((3, 3 * multiple, 5 * multiple), 0.5, np.float32)
        try:
            arrays = runner(network_inputs(tried, runner.graph, image, image))
            read_disparity(tried, runner.graph, arrays, image.shape[1:])
        except AanetError as error:
            refusal = error
            continue
        return tried
    raise refusal


def _sample() -> _Sample:
    """Return the Motorcycle pair at half size."""
    pair = motorcycle()
    assert pair.disparity is not None
    assert pair.valid is not None
    size = (round(pair.left.shape[1] * _SCALE), round(pair.left.shape[0] * _SCALE))
    left, right = (
        cv2.resize(as_rgb_float(image), size, interpolation=cv2.INTER_AREA).transpose(2, 0, 1)
        for image in (pair.left, pair.right)
    )
    truth = np.where(pair.valid, pair.disparity, np.float32(np.nan))
    disparity = cv2.resize(truth, size, interpolation=cv2.INTER_NEAREST) * np.float32(_SCALE)
    valid = np.isfinite(disparity)
    return _Sample(
        np.ascontiguousarray(left),
        np.ascontiguousarray(right),
        np.where(valid, disparity, 0).astype(np.float32),
        valid,
    )


def _memory() -> int:
    """Peak memory of this process in bytes so far; 0 where the system does not tell."""
    if sys.platform != "linux":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _bytes_per_pixel(measured: int, pixels: int) -> int:
    """Return the memory per pixel with a margin; that of compiling for one size counts as well."""
    if sys.platform != "linux":
        return _UNKNOWN_MEMORY
    return min(max(int(_SAFETY * measured / pixels), _LEAST_MEMORY), 10**6)
