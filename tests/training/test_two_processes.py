"""Two processes over gloo have the gradients of one process with the joined batch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from aanet.io.disparity import read_disparity, write_disparity
from aanet.training.recipe import Recipe
from helpers import two_processes

SCRIPT = Path(two_processes.__file__)
# Batch statistics would be those of half a batch in each process: the paper's frozen batch norm has none.
STAGE = """
[[stage]]
crop = [48, 96]
batch = 4
steps = 1
learning_rate = 1e-3
matching_weight = 0.5
frozen_batch_norm = true
"""


@pytest.mark.slow
def test_gradients_are_those_of_the_joined_batch(
    make_recipe: Callable[..., Recipe], pairs_folder: Path, tmp_path: Path
) -> None:
    # Truth of unequal density: averaging each process's own mean would weigh its pixels wrongly.
    sparse = tmp_path / "sparse"
    for source in pairs_folder.rglob("*.*"):
        target = sparse / source.relative_to(pairs_folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
    for number in range(5):
        path = sparse / f"disparity/{number}.pfm"
        truth = read_disparity(path)
        known = np.random.default_rng(number).random(truth.shape) < 0.05 + 0.2 * number
        write_disparity(path, np.where(known, truth, np.nan).astype(np.float32))
    make_recipe(STAGE)
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(recipe.read_text().replace(str(pairs_folder), str(sparse)))

    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    subprocess.run(
        [*command, str(SCRIPT), str(recipe), str(tmp_path)], check=True, env=environment, timeout=300
    )
    _, expected = two_processes.gradients_of_one_step(recipe)
    assert len(expected) > 50
    for rank in (0, 1):
        gradients = load_file(tmp_path / f"rank{rank}.safetensors")
        assert gradients.keys() == expected.keys()
        for name, gradient in gradients.items():
            scale = float(expected[name].abs().max())
            assert torch.allclose(gradient, expected[name], rtol=1e-3, atol=1e-4 * scale + 1e-7), name
