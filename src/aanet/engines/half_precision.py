"""Whether bf16 may be the default: tried on a real pair, once for each file of weights.

What bf16 loses depends on the weights and on what a version of OpenVINO leaves in float32, so it is measured.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from aanet.data.atomic import atomic_path
from aanet.data.images import as_rgb_float
from aanet.data.motorcycle import motorcycle
from aanet.engines.engine import Engine, Precision
from aanet.errors import AanetError
from aanet.padding import padding_for
from aanet.tiling import tile_for

LARGEST_LOSS = 0.02  # pixels of EPE that the speed of bf16 may cost
_KEPT_AS = "bf16.json"
_log = logging.getLogger(__name__)


def choose_precision(folder: Path, open_at: Callable[[Precision], Engine]) -> Precision:
    """Return "bf16" if it costs less than `LARGEST_LOSS` on the Motorcycle pair, or else "float32".

    Args:
        folder: Of the converted network, in which the errors are kept; later calls read them there.
        open_at: Returns the network's engine at a precision.
    """
    errors = _read(folder)
    if errors is None:
        _log.info("Trying bf16 on the Motorcycle pair; this is done once.")
        errors = {"float32": motorcycle_error(open_at("float32")), "bf16": motorcycle_error(open_at("bf16"))}
        if all(map(math.isfinite, errors.values())):
            _write(folder, errors)
    # So that an error which is not a number counts as a loss.
    return "bf16" if errors["bf16"] - errors["float32"] < LARGEST_LOSS else "float32"


def motorcycle_error(engine: Engine) -> float:
    """The engine's mean error on the Motorcycle pair in pixels; infinite if there is no memory for it."""
    pair, facts = motorcycle(), engine.facts
    height, width = pair.left.shape[:2]
    if tile_for(facts, height, width, engine.available_memory()) is not None:
        return math.inf
    padding = padding_for(height, width, facts)
    left, right = (as_rgb_float(image).transpose(2, 0, 1)[None] for image in (pair.left, pair.right))
    disparity = padding.crop(engine(padding.pad(left), padding.pad(right))[0])[0]  # [H, W]
    return float(np.abs(disparity - pair.disparity)[pair.valid].mean())


def _write(folder: Path, errors: dict[Precision, float]) -> None:
    try:
        with atomic_path(folder / _KEPT_AS) as temporary:
            temporary.write_text(json.dumps(errors, indent=2) + "\n", encoding="utf-8")
    except AanetError as error:
        _log.warning("What bf16 costs is measured again next time: %s", error)


def _read(folder: Path) -> dict[Precision, float] | None:
    """The errors that were measured before; None if there are none, or if the file is damaged."""
    try:
        content = json.loads((folder / _KEPT_AS).read_text(encoding="utf-8"))
        return {"float32": float(content["float32"]), "bf16": float(content["bf16"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None
