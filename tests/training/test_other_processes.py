"""A run continues with another number of processes: the pairs go on, and only rounding differs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from aanet.training.recipe import Recipe
from aanet.training.resuming import where_exactness_ends
from helpers import trained_pairs

# Five pairs in batches of two: the change of processes is within an epoch, and batches reach into the next.
STAGE = """
[[stage]]
crop = [48, 96]
batch = 2
steps = 8
learning_rate = 1e-3
frozen_batch_norm = true
"""
CHANGE, END = 3, 8


def train(processes: int, recipe: Path, folder: Path, stop: int, output: Path) -> tuple[list[list[str]], str]:
    """Start or continue a run; returns the pairs of each step over all processes, and what was printed."""
    output.mkdir()
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    script = [trained_pairs.__file__, str(recipe), str(folder), str(stop), str(output)]
    ended = subprocess.run(
        [*command, str(processes), *script],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=120,
    )
    parts = [json.loads(path.read_text()) for path in sorted(output.glob("rank*.json"))]
    assert len(parts) == processes
    # A batch that reaches into the next epoch may have one pair twice, once of each.
    steps = [sorted(name for part in step for name in part) for step in zip(*parts, strict=True)]
    return steps, ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(2, 1), pytest.param(1, 2, marks=pytest.mark.extended)])
def test_pairs_go_on_where_the_other_processes_stopped(
    before: int, after: int, make_recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    make_recipe(STAGE)
    recipe = tmp_path / "tiny.toml"
    whole, expected = trained_pairs.train(recipe, tmp_path / "whole", END)
    first, said = train(before, recipe, tmp_path / "run", CHANGE, tmp_path / "first")
    assert "the run starts" in said
    rest, said = train(after, recipe, tmp_path / "run", END, tmp_path / "rest")
    assert [*first, *rest] == [sorted(step) for step in expected]
    assert where_exactness_ends(before, after) in said
    continued, _ = trained_pairs.train(recipe, tmp_path / "run", END)
    for name, value in continued.network.state_dict().items():
        torch.testing.assert_close(value, whole.network.state_dict()[name], rtol=1e-3, atol=1e-4, msg=name)
