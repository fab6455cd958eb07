"""Whether bf16 is the default: tried on a real pair, once for each file of weights and each machine.

What bf16 loses depends on the weights and on what a version of OpenVINO leaves in float32, what it gains on
the processor; so both are measured.  This runs in the process that predicts: `bf16_support` must have said
before that bf16 works, or it might end the process.
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

LARGEST_LOSS = 0.02  # pixels of EPE that the speed of bf16 may cost
ROUNDS = 3  # timed predictions at each precision, in turn
_TRIED: tuple[Precision, ...] = ("float32", "bf16")
_KEPT_AS = "bf16.json"
_log = logging.getLogger(__name__)
_Clock = Callable[[], float]


@dataclass(frozen=True)
class Trial:
    """What the Motorcycle pair showed, by precision."""

    errors: dict[Precision, float]  # pixels of EPE; infinite where there was no memory for the pair
    seconds: dict[Precision, float]  # of one prediction, the median

    @property
    def choice(self) -> Precision:
        """bf16, if it lost next to nothing and was clearly faster."""
        # So that an error which is not a number counts as a loss.
        loses_little = self.errors["bf16"] - self.errors["float32"] < LARGEST_LOSS
        faster = self.seconds["bf16"] < CLEARLY_FASTER * self.seconds["float32"]
        return "bf16" if loses_little and faster else "float32"

    @property
    def final(self) -> bool:
        """Whether it would come out like this again."""
        return all(map(math.isfinite, self.errors.values()))


def choose_precision(
    folder: Path, open_at: Callable[[Precision], Engine], clock: _Clock = time.perf_counter
) -> Precision:
    """Return "bf16" if on the Motorcycle pair it is faster and loses below `LARGEST_LOSS`, or else "float32".

    Args:
        folder: Of the converted network, in which errors and times are kept; later calls read them there.
        open_at: Returns the network's engine at a precision.
        clock: Tells the time in seconds.
    """
    trial = _read(folder)
    if trial is None:
        _log.info("Trying bf16 on the Motorcycle pair; this is done once.")
        trial = _try_out({precision: open_at(precision) for precision in _TRIED}, clock)
        if trial.final:
            _write(folder, trial)
    return trial.choice


def predict_motorcycle(engine: Engine) -> Callable[[], float] | None:
    """What predicts the Motorcycle pair and returns its mean error in pixels; None without memory for it."""
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


def _try_out(engines: dict[Precision, Engine], clock: _Clock) -> Trial:
    """Predict with each, then time them in turn: whatever else the machine does hits both alike."""
    runs: dict[Precision, Callable[[], float]] = {}
    for precision, engine in engines.items():
        run = predict_motorcycle(engine)
        if run is None:
            return Trial(dict.fromkeys(engines, math.inf), dict.fromkeys(engines, math.inf))
        runs[precision] = run
    errors = {precision: run() for precision, run in runs.items()}  # compiles them as well
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
        with atomic_path(folder / _KEPT_AS) as temporary:
            temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    except AanetError as error:
        _log.warning("What bf16 costs is measured again next time: %s", error)


def _read(folder: Path) -> Trial | None:
    """What was measured before; None if nothing was, or if the record is damaged or of another machine."""
    try:
        content = json.loads((folder / _KEPT_AS).read_text(encoding="utf-8"))
        trial = Trial(_numbers(content["errors"]), _numbers(content["seconds"]))
        return trial if content["machine"] == machine() else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _numbers(values: Any) -> dict[Precision, float]:
    return {precision: float(values[precision]) for precision in _TRIED}
