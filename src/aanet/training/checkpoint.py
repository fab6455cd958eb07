"""Checkpoints: a folder per step, written atomically; the last three and the best are kept."""

from __future__ import annotations

import json
import math
import pickle
import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from aanet.errors import ReadError, UnsupportedError, WriteError

KEPT = 3
PREFIX = "step-"


@dataclass(frozen=True)
class TrainingState:
    """The state from which a run continues exactly."""

    network: str  # name of the network, checked when loading
    step: int  # counted over all stages
    score: float  # validation EPE; NaN if this step was not validated
    weights: dict[str, Tensor]
    average: dict[str, Tensor]  # exponential moving average of the weights; empty without EMA
    state: dict[str, Any]  # optimizer, schedule, sampler and random states: tensors and plain values only


def save_checkpoint(folder: Path, checkpoint: TrainingState) -> Path:
    """Write a checkpoint into `folder`, then remove those no longer needed; a failure removes none."""
    target = folder / f"{PREFIX}{checkpoint.step:08d}"
    writing, replaced = folder / ".writing", folder / ".replaced"
    try:
        shutil.rmtree(writing, ignore_errors=True)  # left behind by a killed process
        writing.mkdir(parents=True)
        _write(writing, checkpoint)
        if target.exists():  # the same step after a resume; rename cannot replace a non-empty folder
            shutil.rmtree(replaced, ignore_errors=True)
            target.rename(replaced)
        writing.rename(target)
    except (OSError, RuntimeError, SafetensorError) as error:
        # torch and safetensors report a full disk with their own exceptions.
        raise WriteError(f"Cannot write the checkpoint {target}: {_reason(error)}.") from error
    finally:
        shutil.rmtree(writing, ignore_errors=True)
    shutil.rmtree(replaced, ignore_errors=True)
    _prune(folder)
    return target


def _write(folder: Path, checkpoint: TrainingState) -> None:
    contiguous = {name: value.contiguous() for name, value in checkpoint.weights.items()}
    save_file(contiguous, folder / "weights.safetensors")
    if checkpoint.average:
        contiguous = {name: value.contiguous() for name, value in checkpoint.average.items()}
        save_file(contiguous, folder / "average.safetensors")
    torch.save(checkpoint.state, folder / "state.pt")
    # JSON has no NaN: the score of a step that was not validated is null.
    score = None if math.isnan(checkpoint.score) else checkpoint.score
    facts = {"network": checkpoint.network, "step": checkpoint.step, "score": score}
    (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")


def _reason(error: Exception) -> str:
    cause = error.strerror if isinstance(error, OSError) else None
    text = cause or str(error).splitlines()[0]
    return text.rstrip(".")[:1].lower() + text.rstrip(".")[1:]


def load_checkpoint(path: Path, network: str) -> TrainingState:
    """Read a checkpoint folder; it must belong to the named network."""
    try:
        facts = json.loads((path / "facts.json").read_text(encoding="utf-8"))
        if facts["network"] != network:
            raise UnsupportedError(
                f"{path} is a checkpoint of {facts['network']}; the recipe trains {network}."
            )
        average = path / "average.safetensors"
        return TrainingState(
            network=facts["network"],
            step=facts["step"],
            score=math.nan if facts["score"] is None else facts["score"],
            weights=load_file(path / "weights.safetensors"),
            average=load_file(average) if average.exists() else {},
            state=torch.load(path / "state.pt", weights_only=True),
        )
    except (OSError, KeyError, json.JSONDecodeError, SafetensorError, RuntimeError) as error:
        raise ReadError(f"{path} is not a complete checkpoint: {_reason(error)}.") from error
    except pickle.UnpicklingError as error:
        state = path / "state.pt"
        raise ReadError(f"{state} contains objects other than tensors and plain values.") from error


def checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, oldest first."""
    return sorted(folder.glob(f"{PREFIX}*")) if folder.is_dir() else []


def best_checkpoint(folder: Path) -> Path | None:
    """Return the checkpoint with the lowest validation error, or None if none was validated."""
    scored = [(score, path) for path in checkpoints(folder) if (score := _score(path)) is not None]
    return min(scored)[1] if scored else None


def _score(path: Path) -> float | None:
    try:
        score = json.loads((path / "facts.json").read_text(encoding="utf-8"))["score"]
    except (OSError, KeyError, json.JSONDecodeError):
        return None
    return None if score is None else float(score)


def _prune(folder: Path) -> None:
    keep = set(checkpoints(folder)[-KEPT:]) | {best_checkpoint(folder)}
    for path in checkpoints(folder):
        if path not in keep:
            shutil.rmtree(path, ignore_errors=True)


def random_states() -> dict[str, Any]:
    """Return the states of Python's, NumPy's and PyTorch's global generators."""
    _, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)  # noqa: NPY002 - the global state
    return {
        "python": random.getstate(),
        "numpy": (torch.from_numpy(np.asarray(keys, np.int64)), int(position), int(has_gauss), float(gauss)),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def restore_random_states(states: dict[str, Any]) -> None:
    """Restore the states returned by `random_states`."""
    version, internal, gauss_next = states["python"]
    random.setstate((version, tuple(internal), gauss_next))
    keys, position, has_gauss, gauss = states["numpy"]
    state = ("MT19937", keys.numpy().astype(np.uint32), position, has_gauss, gauss)
    np.random.set_state(state)  # noqa: NPY002 - the global state
    torch.set_rng_state(states["torch"])
    if states["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])
