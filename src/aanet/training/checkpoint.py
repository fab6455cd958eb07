"""Checkpoints: a folder per step, written atomically; the last three and the best are kept.

`facts.json` contains a digest of every file and of its own values, so that no run resumes from damaged files.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
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
from safetensors.torch import load, save
from torch import Tensor

from aanet.errors import ReadError, UnsupportedError, WriteError

KEPT = 3
PREFIX = "step-"
DAMAGED = "damaged-"  # put before the name of a checkpoint that could not be read
WEIGHTS, AVERAGE, STATE, FACTS = "weights.safetensors", "average.safetensors", "state.pt", "facts.json"


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
    # The replaced checkpoint still counts as one, in case the process is killed before the new one is there.
    writing, replaced = folder / ".writing", target.with_name(f"{target.name}.replaced")
    try:
        shutil.rmtree(writing, ignore_errors=True)  # left behind by a killed process
        writing.mkdir(parents=True)
        _write(writing, checkpoint)
        if target.exists():  # the same step after a resume; rename cannot replace a non-empty folder
            shutil.rmtree(replaced, ignore_errors=True)
            target.rename(replaced)
        writing.rename(target)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise WriteError(f"Cannot write the checkpoint {target}: {reason}.") from error
    finally:
        shutil.rmtree(writing, ignore_errors=True)
    shutil.rmtree(replaced, ignore_errors=True)
    _prune(folder)
    return target


def _write(folder: Path, checkpoint: TrainingState) -> None:
    # Encoded in memory first: torch and safetensors report a full disk in their own words.
    state = io.BytesIO()
    torch.save(checkpoint.state, state)
    contents = {WEIGHTS: _encode(checkpoint.weights), STATE: state.getvalue()}
    if checkpoint.average:
        contents[AVERAGE] = _encode(checkpoint.average)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    facts: dict[str, Any] = {
        "network": checkpoint.network,
        "step": checkpoint.step,
        # JSON has no NaN: the score of a step that was not validated is null.
        "score": None if math.isnan(checkpoint.score) else checkpoint.score,
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
    }
    text = json.dumps({**facts, "sha256": _digest(facts)})
    (folder / FACTS).write_bytes(text.encode())


def _encode(tensors: dict[str, Tensor]) -> bytes:
    return save({name: value.contiguous() for name, value in tensors.items()})


def _digest(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def load_checkpoint(path: Path, network: str) -> TrainingState:
    """Read a checkpoint folder; it must be undamaged and belong to the named network."""
    try:
        facts = json.loads((path / FACTS).read_bytes())
        contents = _read_files(path, facts)
        if facts["network"] != network:
            raise UnsupportedError(
                f"{path} is a checkpoint of {facts['network']}; the recipe trains {network}."
            )
        return TrainingState(
            network=network,
            step=int(facts["step"]),
            score=math.nan if facts["score"] is None else float(facts["score"]),
            weights=load(contents[WEIGHTS]),
            average=load(contents[AVERAGE]) if AVERAGE in contents else {},
            state=dict(torch.load(io.BytesIO(contents[STATE]), weights_only=True)),
        )
    except (ReadError, UnsupportedError):
        raise
    except pickle.UnpicklingError as error:
        raise ReadError(f"{path / STATE} contains objects other than tensors and plain values.") from error
    except FileNotFoundError as error:
        raise ReadError(f"{path} is not a complete checkpoint: {error.filename} is missing.") from error
    except Exception as error:  # a damaged file can raise any exception
        raise ReadError(f"{path} is damaged ({type(error).__name__}).") from error


def _read_files(path: Path, facts: dict[str, Any]) -> dict[str, bytes]:
    """Return the contents of the files after comparing their digests with those in the facts."""
    if "files" not in facts:  # written before there were digests
        names = [WEIGHTS, STATE, *([AVERAGE] if (path / AVERAGE).exists() else [])]
        return {name: (path / name).read_bytes() for name in names}
    if _digest({key: value for key, value in facts.items() if key != "sha256"}) != facts["sha256"]:
        raise ReadError(f"{path / FACTS} is damaged.")
    contents = {
        name: (path / name).read_bytes() for name in (WEIGHTS, STATE, AVERAGE) if name in facts["files"]
    }
    for name, content in contents.items():
        if hashlib.sha256(content).hexdigest() != facts["files"][name]:
            raise ReadError(f"{path / name} is damaged.")
    return contents


def set_aside(path: Path) -> None:
    """Rename a checkpoint that cannot be read, so that it no longer counts as one of the last three."""
    with contextlib.suppress(OSError):  # a folder that cannot be changed is skipped again next time
        path.rename(path.with_name(DAMAGED + path.name))


def checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, oldest first."""
    return sorted(folder.glob(f"{PREFIX}*")) if folder.is_dir() else []


def best_checkpoint(folder: Path) -> Path | None:
    """Return the checkpoint with the lowest validation error, or None if none was validated."""
    scored = [(score, path) for path in checkpoints(folder) if (score := _score(path)) is not None]
    return min(scored)[1] if scored else None


def _score(path: Path) -> float | None:
    try:
        score = json.loads((path / FACTS).read_bytes())["score"]
        return None if score is None else float(score)
    except (OSError, KeyError, ValueError, TypeError, RecursionError):
        return None


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
