"""Choosing between float32 and bf16 by a trial on a real pair, once per weights file and machine.

The loss of accuracy depends on the weights and on which operations OpenVINO keeps in float32, and the gain in
speed on the processor, so both are measured. The trial runs in the process that predicts and could crash it
where bf16 does not work; callers check `bf16_support` first.
"""

from __future__ import annotations

import json
import logging
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aanet.data.motorcycle import motorcycle
from aanet.engines.bf16_support import CLEARLY_FASTER, machine
from aanet.errors import AanetError
from aanet.inference.padding import padding_for
from aanet.inference.spec import Engine, Precision
from aanet.inference.tiling import tile_for
from aanet.io.atomic import atomic_path
from aanet.io.images import as_rgb_float

LARGEST_LOSS = 0.02  # allowed increase of the EPE in pixels
ROUNDS = 3  # timed predictions per precision, interleaved
_TRIED: tuple[Precision, ...] = ("float32", "bf16")
_FILE_NAME = "bf16.json"
_log = logging.getLogger(__name__)
_Clock = Callable[[], float]


@dataclass(frozen=True)
class Trial:
    """Accuracy and speed on the Motorcycle pair by precision."""

    errors: dict[Precision, float]  # EPE in pixels; infinite if there was not enough memory
    seconds: dict[Precision, float]  # median time of a prediction

    @property
    def choice(self) -> Precision:
        """bf16 if it was almost as accurate as float32 and clearly faster, else float32."""
        accurate = self.errors["bf16"] - self.errors["float32"] < LARGEST_LOSS  # False for NaN
        faster = self.seconds["bf16"] < CLEARLY_FASTER * self.seconds["float32"]
        return "bf16" if accurate and faster else "float32"

    @property
    def conclusive(self) -> bool:
        """Whether the trial could run, so that its result can be cached."""
        return all(map(math.isfinite, self.errors.values()))


def choose_precision(
    folder: Path, open_at: Callable[[Precision], Engine], clock: _Clock = time.perf_counter
) -> Precision:
    """Return "bf16" if it is faster on the Motorcycle pair and almost as accurate, else "float32".

    Args:
        folder: The folder of the converted network, in which the result is cached.
        open_at: Opens the network's engine at a precision.
        clock: Returns the time in seconds.
    """
    trial = _read(folder)
    if trial is None:
        _log.info("Comparing bf16 with float32 on the Motorcycle pair; this is done once.")
        trial = _run_trial({precision: open_at(precision) for precision in _TRIED}, clock)
        if trial.conclusive:
            _write(folder, trial)
    return trial.choice


def predict_motorcycle(engine: Engine) -> Callable[[], float] | None:
    """Return a function that predicts the Motorcycle pair and returns its EPE; None if memory is short."""
    pair, spec = motorcycle(), engine.spec
    height, width = pair.left.shape[:2]
    if tile_for(spec, height, width, engine.available_memory()) is not None:
        return None
    padding = padding_for(height, width, spec.sizes)
    left, right = (
        padding.pad(as_rgb_float(image).transpose(2, 0, 1)[None]) for image in (pair.left, pair.right)
    )

    def predict() -> float:
        disparity = padding.crop(engine(left, right)[0])[0]  # [H, W]
        return float(np.abs(disparity - pair.disparity)[pair.valid].mean())

    return predict


def _run_trial(engines: dict[Precision, Engine], clock: _Clock) -> Trial:
    """Predict with each engine, then time them interleaved, so that other load affects both equally."""
    runs: dict[Precision, Callable[[], float]] = {}
    for precision, engine in engines.items():
        run = predict_motorcycle(engine)
        if run is None:
            return Trial(dict.fromkeys(engines, math.inf), dict.fromkeys(engines, math.inf))
        runs[precision] = run
    errors = {precision: run() for precision, run in runs.items()}  # also compiles the models
    seconds: dict[Precision, list[float]] = {precision: [] for precision in runs}
    for _ in range(ROUNDS):
        for precision, run in runs.items():
            start = clock()
            run()
            seconds[precision].append(clock() - start)
    return Trial(errors, {precision: statistics.median(values) for precision, values in seconds.items()})


def _write(folder: Path, trial: Trial) -> None:
    content = {"machine": machine(), **asdict(trial)}
    try:
        with atomic_path(folder / _FILE_NAME) as temporary:
            temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    except AanetError as error:
        _log.warning("The comparison of bf16 with float32 could not be cached: %s", error)


def _read(folder: Path) -> Trial | None:
    """Return the cached trial, or None if it is missing, damaged or of another machine."""
    try:
        content = json.loads((folder / _FILE_NAME).read_text(encoding="utf-8"))
        trial = Trial(_numbers(content["errors"]), _numbers(content["seconds"]))
        return trial if content["machine"] == machine() else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _numbers(values: Any) -> dict[Precision, float]:
    return {precision: float(values[precision]) for precision in _TRIED}
