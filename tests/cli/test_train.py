"""`aanet train` and `aanet pseudo-label`: what they print, write and refuse."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from aanet.cli.pseudo_label import pseudo_label
from aanet.cli.train import train
from aanet.errors import AanetError
from aanet.io.disparity import write_disparity
from aanet.io.images import write_image

RUNNER = CliRunner()
app = typer.Typer()
app.command()(train)
app.command()(pseudo_label)


def invoke(*arguments: object) -> str:
    """Run a command as the entry point would; errors for the user pass through."""
    result = RUNNER.invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """Two stages of StereoNet-AA on two tiny pairs."""
    rng = np.random.default_rng(0)
    root = tmp_path / "pairs"
    for number in range(2):
        for side in ("left", "right"):
            write_image(root / f"{side}/{number}.png", rng.integers(0, 256, (32, 48, 3)).astype(np.uint8))
        write_disparity(root / f"disparity/{number}.pfm", np.full((32, 48), 3, np.float32))
    path = tmp_path / "tiny.toml"
    stage = "crop = [32, 48]\nbatch = 1\nsteps = 3\nlearning_rate = 1e-3\n"
    path.write_text(
        f"[network]\nname = 'stereonet_aa'\nmax_disparity = 16\ninitialization = 'matching'\n"
        f"[[data]]\nname = 'folder'\nroot = '{root}'\n[run]\nworkers = 0\naccelerator = 'cpu'\n"
        f"[[stage]]\nname = 'first'\ntrains = 'features'\n{stage}[[stage]]\nname = 'second'\n{stage}"
    )
    return path


def test_a_dry_run_prints_everything_trains_two_steps_per_stage_and_writes_nothing(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.rglob("*"))
    output = invoke("train", recipe, "--dry-run", "--set", "seed=77")
    assert set(tmp_path.rglob("*")) == before
    assert '"seed": 77' in output
    assert '"pairs": 2' in output
    assert "aggregation: " in output
    lines = [line for line in output.splitlines() if "  loss " in line]
    assert [line.split()[0] for line in lines] == ["first", "first", "second", "second"]


def test_a_run_is_not_overwritten_and_can_be_resumed(recipe: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert "wrote" in invoke("train", recipe, "--out", out)
    assert (out / "weights.safetensors").is_file()
    with pytest.raises(AanetError, match="already holds a run: add --resume"):
        invoke("train", recipe, "--out", out)
    longer = invoke(
        "train", recipe, "--out", out, "--resume", "--set", "stage.1.steps=4", "--set", "run.log_steps=1"
    )
    assert [line for line in longer.splitlines() if "step 7 " in line]
    assert "step 6 " not in longer


def test_mistakes_are_one_sentence(recipe: Path, tmp_path: Path) -> None:
    with pytest.raises(AanetError, match="did you mean 'workers'"):
        invoke("train", recipe, "--set", "run.wokers=2")
    with pytest.raises(AanetError, match=r"does not exist; folder is expected there"):
        invoke("train", recipe, "--dry-run", "--set", f"data.0.root={tmp_path / 'absent'}")
    with pytest.raises(AanetError, match="There is no network 'aaanet'"):
        invoke("train", recipe, "--dry-run", "--set", "network.name=aaanet")
    with pytest.raises(AanetError, match="no checkpoint in"):
        invoke("train", recipe, "--resume", "--out", tmp_path / "nothing")


def test_pseudo_labels_are_made_by_a_trained_network(recipe: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    invoke("train", recipe, "--out", out)
    output = invoke("pseudo-label", "folder", tmp_path / "pairs", "--model", out / "weights.safetensors")
    assert output.startswith("Wrote 2 maps; ")
    assert len(list((tmp_path / "pairs/disparity_pseudo").glob("*.pfm"))) == 2
    supervised = invoke("train", recipe, "--dry-run", "--set", "data.0.pseudo_labels=true")
    assert "second  67%" in supervised


def test_help_is_quick_because_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, aanet.cli.train, aanet.cli.pseudo_label; "
        "print([name for name in ('torch', 'cv2', 'lightning') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.strip() == "[]"
