"""Checkpoints are whole, few, and give back exactly what was stored."""

from __future__ import annotations

import errno
import math
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from aanet.errors import ReadError, UnsupportedError, WriteError
from aanet.training import checkpoint as module
from aanet.training.checkpoint import (
    TrainingState,
    best_checkpoint,
    checkpoints,
    load_checkpoint,
    random_states,
    restore_random_states,
    save_checkpoint,
)


def make(step: int, score: float = math.nan, network: str = "aanet") -> TrainingState:
    weights = {"conv.weight": torch.full((2, 3, 1, 1), float(step))}
    state = {
        "stage": 1,
        "moments": [torch.arange(4)],
        "random": random_states(),
        "progress": {"minutes": 2.5},
    }
    return TrainingState(network, step, score, weights, {"conv.weight": torch.zeros(2, 3, 1, 1)}, state)


def steps(folder: Path) -> list[int]:
    return [int(path.name.removeprefix("step-")) for path in checkpoints(folder)]


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, make(7, score=1.25))
    loaded = load_checkpoint(path, "aanet")
    assert (loaded.network, loaded.step, loaded.score) == ("aanet", 7, 1.25)
    assert torch.equal(loaded.weights["conv.weight"], torch.full((2, 3, 1, 1), 7.0))
    assert torch.equal(loaded.average["conv.weight"], torch.zeros(2, 3, 1, 1))
    assert loaded.state["progress"] == {"minutes": 2.5}
    assert torch.equal(loaded.state["moments"][0], torch.arange(4))
    assert math.isnan(load_checkpoint(save_checkpoint(tmp_path, make(8)), "aanet").score)


def test_channels_last_weights_come_back_with_the_same_values(tmp_path: Path) -> None:
    weight = torch.randn(4, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    path = save_checkpoint(tmp_path, TrainingState("aanet", 1, math.nan, {"w": weight}, {}, {}))
    assert torch.equal(load_checkpoint(path, "aanet").weights["w"], weight)


def test_the_last_three_and_the_best_are_kept(tmp_path: Path) -> None:
    for step, score in enumerate([5.0, 2.0, 3.0, math.nan, 4.0, math.nan, 2.5]):
        save_checkpoint(tmp_path, make(step, score))
    assert steps(tmp_path) == [1, 4, 5, 6]
    best = best_checkpoint(tmp_path)
    assert best is not None
    assert best.name == "step-00000001"


def test_the_same_step_can_be_saved_again(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, make(3))
    path = save_checkpoint(tmp_path, make(3, score=1.0))
    assert load_checkpoint(path, "aanet").score == 1.0
    assert [each.name for each in tmp_path.iterdir()] == ["step-00000003"]


@pytest.mark.parametrize("writer", ["save_file", "save"])
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), RuntimeError("write failed")]
)
def test_a_full_disk_loses_no_earlier_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str, error: Exception
) -> None:
    for step in range(3):
        save_checkpoint(tmp_path, make(step))

    def fail(_: Any, path: Path) -> None:
        Path(path).write_bytes(b"half of it")
        raise error

    monkeypatch.setattr(module if writer == "save_file" else torch, writer, fail)
    with pytest.raises(
        WriteError, match=r"Cannot write the checkpoint .*step-00000003: (no space left|write)"
    ):
        save_checkpoint(tmp_path, make(3))
    monkeypatch.undo()
    assert steps(tmp_path) == [0, 1, 2]
    assert not list(tmp_path.glob(".*"))
    assert load_checkpoint(checkpoints(tmp_path)[-1], "aanet").step == 2


def test_a_checkpoint_of_another_network_is_named(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, make(1, network="psmnet"))
    with pytest.raises(UnsupportedError, match="is a checkpoint of psmnet; the recipe trains aanet"):
        load_checkpoint(path, "aanet")


@pytest.mark.parametrize("name", ["weights.safetensors", "state.pt", "facts.json"])
def test_a_damaged_checkpoint_is_one_sentence(tmp_path: Path, name: str) -> None:
    path = save_checkpoint(tmp_path, make(1))
    (path / name).write_bytes(b"damaged")
    with pytest.raises(ReadError) as caught:
        load_checkpoint(path, "aanet")
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_random_states_are_restored(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, make(1))
    drawn = (random.random(), np.random.rand(), torch.rand(3))  # noqa: NPY002 - the global generator is meant
    restore_random_states(load_checkpoint(path, "aanet").state["random"])
    again = (random.random(), np.random.rand(), torch.rand(3))  # noqa: NPY002
    assert drawn[:2] == again[:2]
    assert torch.equal(drawn[2], again[2])
