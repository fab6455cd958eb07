"""Checkpoints are whole, few, and give back exactly what was stored."""

from __future__ import annotations

import errno
import math
import multiprocessing
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from aanet.errors import ReadError, UnsupportedError, WriteError
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


def test_a_checkpoint_that_is_being_replaced_is_still_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_checkpoint(tmp_path, make(3))
    rename = Path.rename

    def fail(path: Path, target: Path) -> Path:
        if path.name == ".writing":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(WriteError):
        save_checkpoint(tmp_path, make(3))
    monkeypatch.undo()
    (path,) = checkpoints(tmp_path)
    assert load_checkpoint(path, "aanet").step == 3
    save_checkpoint(tmp_path, make(3, score=1.0))
    assert [each.name for each in tmp_path.iterdir()] == ["step-00000003"]


@pytest.mark.parametrize("name", ["weights.safetensors", "average.safetensors", "state.pt", "facts.json"])
def test_a_full_disk_loses_no_earlier_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for step in range(3):
        save_checkpoint(tmp_path, make(step))
    write_bytes = Path.write_bytes

    def write_half(path: Path, content: bytes) -> int:
        if path.name != name:
            return write_bytes(path, content)
        write_bytes(path, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", write_half)
    with pytest.raises(WriteError, match=r"Cannot write the checkpoint .*step-00000003: no space left"):
        save_checkpoint(tmp_path, make(3))
    monkeypatch.undo()
    assert steps(tmp_path) == [0, 1, 2]
    assert not list(tmp_path.glob(".*"))
    assert load_checkpoint(checkpoints(tmp_path)[-1], "aanet").step == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits the size of files in a child process")
def test_a_limit_of_the_file_size_is_one_sentence(tmp_path: Path) -> None:
    import resource
    import signal

    def write() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        with pytest.raises(WriteError, match="file too large") as caught:
            save_checkpoint(tmp_path, make(1))
        assert "enforce fail" not in str(caught.value)

    child = multiprocessing.get_context("fork").Process(target=write)
    child.start()
    child.join()
    assert child.exitcode == 0
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_of_another_network_is_named(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, make(1, network="psmnet"))
    with pytest.raises(UnsupportedError, match="is a checkpoint of psmnet; the recipe trains aanet"):
        load_checkpoint(path, "aanet")


def flip_bit(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGES = {
    "bit flip": flip_bit,
    "bit flip at the end": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "truncated": lambda content: content[: len(content) // 2],
    "empty": lambda _: b"",
    "zeros": lambda content: bytes(len(content)),
    "other file": lambda _: b"damaged",
    "longer": lambda content: content + content,
    "missing": None,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["weights.safetensors", "average.safetensors", "state.pt", "facts.json"])
def test_a_damaged_checkpoint_is_one_sentence(tmp_path: Path, name: str, damage: str) -> None:
    path = save_checkpoint(tmp_path, make(1))
    change = DAMAGES[damage]
    if change is None:
        (path / name).unlink()
    else:
        (path / name).write_bytes(change((path / name).read_bytes()))
    with pytest.raises(ReadError) as caught:
        load_checkpoint(path, "aanet")
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert best_checkpoint(tmp_path) is None


def test_code_in_a_checkpoint_does_not_run(tmp_path: Path) -> None:
    class Creates:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "created",)

    path = save_checkpoint(tmp_path, replace(make(1), state={"stage": Creates()}))  # with correct digests
    with pytest.raises(ReadError, match="other than tensors"):
        load_checkpoint(path, "aanet")
    assert not (tmp_path / "created").exists()


def test_random_states_are_restored(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, make(1))
    drawn = (random.random(), np.random.rand(), torch.rand(3))  # noqa: NPY002 - the global generator is meant
    restore_random_states(load_checkpoint(path, "aanet").state["random"])
    again = (random.random(), np.random.rand(), torch.rand(3))  # noqa: NPY002
    assert drawn[:2] == again[:2]
    assert torch.equal(drawn[2], again[2])
