"""`aanet train` and `aanet pseudo-label`: what they print, write and refuse."""

from __future__ import annotations

import json
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


def test_a_dry_run_summarizes_the_run_and_writes_nothing(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.rglob("*"))
    lines = invoke("train", recipe, "--dry-run", "--set", "seed=77").splitlines()
    assert set(tmp_path.rglob("*")) == before
    assert len(lines) <= 15
    first_words = [line.split()[0] for line in lines]
    for word in ("Network", "Data", "Stages", "first", "second", "Duration", "Memory"):
        assert word in first_words
    assert "folder (2 pairs)" in lines[first_words.index("Data")]
    assert "seed 77" in lines[first_words.index("Start")]


def test_a_dry_run_as_json_has_the_whole_recipe_and_the_estimates(recipe: Path) -> None:
    common = "crop=[32,48], batch=2, learning_rate=1e-3"
    stages = f"stage=[{{{common}, steps=30}}, {{{common}, epochs=10}}, {{{common}, minutes=5}}]"
    facts = json.loads(invoke("train", recipe, "--dry-run", "--json", "--set", stages))
    assert facts["manifest"]["recipe"]["stage"][0]["steps"] == 30
    assert facts["parameters"]["aggregation"] > 0
    assert facts["data"] == [{"name": "folder", "pairs": 2}]
    first, second, third = facts["stages"]
    assert first["steps"] == 30
    assert second["steps"] == 10  # epochs of 2 pairs in batches of 2
    for stage in (first, second):
        assert stage["minutes"] == pytest.approx(stage["steps"] * stage["seconds_per_step"] / 60)
    assert third["minutes"] == 5
    assert facts["minutes"] == pytest.approx(first["minutes"] + second["minutes"] + 5)
    assert facts["peak_memory_bytes"] > 1e7
    with pytest.raises(AanetError, match="--dry-run"):
        invoke("train", recipe, "--json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("stage.1.crop=[31,47]", "crop of stage 'second'"),
        (
            "stage.1.crop=[64,112]",
            "folder 0 has 32×48 pixels, so that most of a crop of 64×112 ",
        ),
        ("data.0.pseudo_labels=true", "2 of 2 pairs of folder have no pseudo ground truth"),
        ("run.accelerator=cuda", "run.accelerator"),
    ],
)
def test_mistakes_are_reported_before_anything_is_printed_or_written(
    change: str,
    message: str,
    recipe: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for options in (["--dry-run"], ["--output", str(tmp_path / "run")]):
        result = RUNNER.invoke(app, ["train", str(recipe), "--set", change, *options])
        assert isinstance(result.exception, AanetError)
        assert message in str(result.exception)
        assert result.output == ""
    assert not (tmp_path / "run").exists()
    assert capsys.readouterr().out == ""


def test_a_missing_recipe_is_reported_before_torch_is_imported() -> None:
    code = (
        "import sys\n"
        "from aanet.cli.train import train\n"
        "from aanet.errors import AanetError\n"
        "from pathlib import Path\n"
        "try: train(Path('nosuch.toml'))\n"
        "except AanetError as error: print(error, 'torch' in sys.modules)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "nosuch.toml" in result.stdout
    assert result.stdout.strip().endswith("False")


def test_bf16_is_tested_before_torch_is_imported(recipe: Path) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "import aanet.engines.bf16_support as bf16\n"
        "from aanet.cli.train import train\n"
        "def note(library): print(library, 'torch' in sys.modules); sys.exit()\n"
        "bf16.bf16_support = note\n"
        "train(Path(sys.argv[1]), overrides=['run.precision=bf16-mixed'])\n"
    )
    command = [sys.executable, "-c", code, str(recipe)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    assert result.stdout.split() == ["torch", "False"]


def test_a_run_is_not_overwritten_and_can_be_resumed(recipe: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert "wrote" in invoke("train", recipe, "--output", out)
    assert (out / "weights.safetensors").is_file()
    with pytest.raises(AanetError, match=r"already contains a run.*--resume"):
        invoke("train", recipe, "--output", out)
    more = ("--resume", "--set", "stage.1.steps=7", "--set", "run.log_steps=1")
    (rest,) = json.loads(invoke("train", recipe, "--output", out, "--dry-run", "--json", *more))["stages"]
    assert (rest["name"], rest["steps"]) == ("second", 4)
    longer = invoke("train", recipe, "--output", out, *more)
    assert [line for line in longer.splitlines() if "step 10 " in line]
    assert "step 6 " not in longer


def test_a_command_that_is_repeated_starts_and_continues_a_run(recipe: Path, tmp_path: Path) -> None:
    command = ("train", recipe, "--output", tmp_path / "run", "--auto-resume", "--set", "run.log_steps=1")
    started = invoke(*command)
    assert "the run starts" in started
    assert "step 6 " in started
    continued = invoke(*command, "--set", "stage.1.steps=4")
    assert "the run starts" not in continued
    assert "step 6 " not in continued
    assert "step 7 " in continued
    finished = invoke(*command, "--set", "stage.1.steps=4")  # harmless
    assert "  step " not in finished
    assert "wrote" in finished
    absent = ("train", recipe, "--output", tmp_path / "absent", "--auto-resume", "--dry-run", "--json")
    assert json.loads(invoke(*absent))["stages"][0]["steps"] == 3
    assert not (tmp_path / "absent").exists()
    with pytest.raises(AanetError, match="exclude each other"):
        invoke(*command, "--resume")


def test_mistakes_are_one_sentence(recipe: Path, tmp_path: Path) -> None:
    with pytest.raises(AanetError, match="did you mean 'workers'"):
        invoke("train", recipe, "--set", "run.wokers=2")
    with pytest.raises(AanetError, match=r"does not exist; folder is expected there"):
        invoke("train", recipe, "--dry-run", "--set", f"data.0.root={tmp_path / 'absent'}")
    with pytest.raises(AanetError, match="There is no network 'aaanet'"):
        invoke("train", recipe, "--dry-run", "--set", "network.name=aaanet")
    with pytest.raises(AanetError, match="no checkpoint in"):
        invoke("train", recipe, "--resume", "--output", tmp_path / "nothing")


@pytest.mark.slow
def test_pseudo_labels_are_made_by_a_trained_network(recipe: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    invoke("train", recipe, "--output", out)
    output = invoke("pseudo-label", "folder", tmp_path / "pairs", "--model", out / "weights.safetensors")
    assert output.startswith("Wrote 2 maps; ")
    assert len(list((tmp_path / "pairs/disparity_pseudo").glob("*.pfm"))) == 2
    supervised = invoke("train", recipe, "--dry-run", "--set", "data.0.pseudo_labels=true")
    assert "Duration" in supervised


def test_help_is_quick_because_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, aanet.cli.train, aanet.cli.pseudo_label; "
        "print([name for name in ('torch', 'cv2', 'lightning') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.strip() == "[]"
