"""The loop: resuming changes nothing, stopping loses nothing, and what goes wrong is said."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from aanet.errors import AanetError, ReadError, UnsupportedError
from aanet.inference.hints import InferenceHints
from aanet.models import zoo
from aanet.models.weights import checkpoint
from aanet.training import stages, step
from aanet.training.checkpoint import checkpoints, load_checkpoint, save_checkpoint
from aanet.training.recipe import Recipe
from aanet.training.reporting import Reporter
from aanet.training.run_lock import locked, wait_until_free
from aanet.training.trainer import Trainer

MakeRecipe = Callable[..., Recipe]

ONE_STAGE = """
[[stage]]
name = "all"
crop = [48, 96]
batch = 2
steps = 4
learning_rate = 1e-3
schedule = "cosine"
"""
THREE_STAGES = """
[[stage]]
name = "features"
trains = "features"
crop = [48, 96]
batch = 2
steps = 3
learning_rate = 1e-3
[[stage]]
name = "aggregation"
trains = "aggregation"
crop = [48, 96]
batch = 2
steps = 3
learning_rate = 1e-3
matching_weight = 0.5
[[stage]]
name = "all"
crop = [48, 96]
batch = 4
accumulate = 2
steps = 3
learning_rate = 1e-3
schedule = "one_cycle"
"""


def trainer(recipe: Recipe, folder: Path | None) -> Trainer:
    return Trainer(recipe, folder, Console(file=io.StringIO()))


def said(each: Trainer) -> str:
    stream = each.reporter.console.file
    assert isinstance(stream, io.StringIO)
    return stream.getvalue()


def records(folder: Path, kind: str = "training") -> list[dict[str, Any]]:
    lines = (folder / "log.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] == kind]


def losses(folder: Path) -> list[tuple[int, str, float, float]]:
    return [(each["step"], each["stage"], each["loss"], each["learning_rate"]) for each in records(folder)]


@pytest.mark.slow
def test_an_interrupted_run_gives_the_same_losses(make_recipe: MakeRecipe, tmp_path: Path) -> None:
    recipe = make_recipe(THREE_STAGES, "run.ema_decay=0.9")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    exported = trainer(recipe, whole).run()
    for number, stop in enumerate((2, 3, 7, None)):  # within a stage, at its end, and within the last
        each = trainer(recipe, parts)
        if number:
            each.resume(parts)
        torch.manual_seed(number)  # what another process would have done to the generators
        result = each.run(stop_after=stop)
    assert len(losses(whole)) == 9
    assert losses(parts) == losses(whole)
    assert exported is not None
    assert result is not None
    one, other = checkpoint.load(str(exported)).state_dict(), checkpoint.load(str(result)).state_dict()
    assert all(torch.equal(value, other[name]) for name, value in one.items())


@pytest.mark.slow
def test_a_stage_goes_on_from_the_averaged_weights_of_the_last(
    make_recipe: MakeRecipe, tmp_path: Path
) -> None:
    still = ONE_STAGE.replace('"all"', '"still"').replace("1e-3", "1e-30") + "frozen_batch_norm = true\n"
    recipe = make_recipe(ONE_STAGE + still, "run.ema_decay=0.9")
    each = trainer(recipe, tmp_path)
    each.run(stop_after=4)  # the whole first stage
    averaged = load_checkpoint(checkpoints(tmp_path / "checkpoints")[-1], "stereonet_aa").average
    each = trainer(recipe, tmp_path)
    each.resume(tmp_path)
    raw = each.network.state_dict()
    assert not all(torch.allclose(value, raw[name], atol=1e-6) for name, value in averaged.items())
    each.run()
    for name, value in each.network.state_dict().items():
        torch.testing.assert_close(value, averaged[name], msg=name)


@pytest.mark.slow
def test_workers_do_not_change_the_losses(make_recipe: MakeRecipe, tmp_path: Path) -> None:
    for workers in (0, 2):
        trainer(make_recipe(ONE_STAGE, f"run.workers={workers}"), tmp_path / str(workers)).run()
    assert losses(tmp_path / "0") == losses(tmp_path / "2")


def test_minutes_of_budget_outlive_an_interruption(make_recipe: MakeRecipe, tmp_path: Path) -> None:
    stage = ONE_STAGE.replace("steps = 4", "minutes = 1000")
    trainer(make_recipe(stage), tmp_path).run(stop_after=2)
    spent = load_checkpoint(checkpoints(tmp_path / "checkpoints")[-1], "stereonet_aa").state["progress"][
        "minutes"
    ]
    assert spent > 0
    again = trainer(make_recipe(stage.replace("1000", str(spent))), tmp_path)  # the budget is used up
    again.resume(tmp_path)
    again.run()
    assert again.step == 2


@pytest.mark.parametrize("workers", [0, 1])
def test_sigterm_to_all_processes_writes_a_checkpoint_and_stops(
    make_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    original = step.Stepper.step

    def step_and_be_told_to_stop(self: step.Stepper) -> step.StepResult:
        result = original(self)
        children = [child.pid for child in multiprocessing.active_children() if child.pid]
        assert len(children) == workers
        for process in (*children, os.getpid()):
            os.kill(process, signal.SIGTERM)
        time.sleep(0.2)  # a worker that ends now would be noticed
        return result

    monkeypatch.setattr(step.Stepper, "step", step_and_be_told_to_stop)
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGCHLD)]
    each = trainer(make_recipe(ONE_STAGE, f"run.workers={workers}"), tmp_path)
    assert each.run() is None
    assert [path.name for path in checkpoints(tmp_path / "checkpoints")] == ["step-00000001"]
    assert "--resume" in said(each)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGCHLD)] == before


def test_checkpoints_come_every_so_many_minutes(make_recipe: MakeRecipe, tmp_path: Path) -> None:
    recipe = make_recipe(ONE_STAGE, "run.checkpoint_minutes=0")
    trainer(recipe, tmp_path).run(stop_after=3)
    assert [path.name[-1] for path in checkpoints(tmp_path / "checkpoints")] == ["1", "2", "3"]


def spoil_losses(monkeypatch: pytest.MonkeyPatch, spoiled: set[int]) -> None:
    """Make the loss of the given calls infinite."""
    original, calls = stages.StageModule.forward, iter(range(1, 1000))

    def forward(self: stages.StageModule, *inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        loss, disparity = original(self, *inputs)
        return (loss * torch.inf if next(calls) in spoiled else loss), disparity

    monkeypatch.setattr(stages.StageModule, "forward", forward)


def test_a_loss_that_is_not_finite_is_reported_and_skipped(
    make_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil_losses(monkeypatch, {2})
    each = trainer(make_recipe(ONE_STAGE), tmp_path)
    each.run(stop_after=1)
    before = {name: value.clone() for name, value in each.network.state_dict().items()}
    each.stopping = False
    each.run(stop_after=2)
    assert all(torch.equal(value, before[name]) for name, value in each.network.state_dict().items())
    assert "step 2 skipped, its loss is not finite: folder " in said(each)
    assert each.skipped == 1


@pytest.mark.slow
def test_the_tenth_loss_that_is_not_finite_stops_the_run(
    make_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil_losses(monkeypatch, set(range(1, 100)))
    each = trainer(make_recipe(ONE_STAGE.replace("steps = 4", "steps = 40")), tmp_path)
    with pytest.raises(AanetError, match="not finite in 10 steps, the last time for folder "):
        each.run()
    assert each.step == 10


def test_a_finished_run_is_complete(make_recipe: MakeRecipe, tmp_path: Path, pairs_folder: Path) -> None:
    validation = f"[validation]\nlimit = 2\n[[validation.data]]\nname = 'folder'\nroot = '{pairs_folder}'\n"
    recipe = make_recipe(ONE_STAGE + validation, "run.picture_steps=2")
    each = trainer(recipe, tmp_path)
    path = each.run()
    assert path == tmp_path / "weights.safetensors"
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["recipe"]["stage"][0]["batch"] == 2
    assert manifest["data"] == [{"stage": "all", "pairs": 5, "source": "folder"}]
    assert {"seed", "recipe_digest", "packages", "python"} <= set(manifest)
    assert list((tmp_path / "tensorboard").iterdir())
    (validated,) = records(tmp_path, "validation")
    assert validated["scores"]["folder"].keys() == {"EPE", "bad-2", "bad-3", "D1"}
    last = load_checkpoint(checkpoints(tmp_path / "checkpoints")[-1], "stereonet_aa")
    assert last.score == pytest.approx(validated["scores"]["folder"]["EPE"])
    assert not checkpoint.load(str(path)).architecture.training_heads
    facts = checkpoint.read(path).facts
    assert (facts["trained_on"], facts["start_from"]) == ("folder", "random weights")
    assert facts["recipe_digest"] == recipe.digest()
    assert checkpoint.load(str(tmp_path / "weights-with-heads.safetensors")).architecture.training_heads


def test_cutting_stages_short_writes_nothing_without_a_folder(
    make_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = make_recipe(THREE_STAGES)
    before = set(tmp_path.rglob("*"))
    each = trainer(recipe, None)
    assert each.run(steps_per_stage=2) is None
    assert each.step == 6
    assert set(tmp_path.rglob("*")) == before


def test_a_corrupt_image_is_one_sentence(make_recipe: MakeRecipe, tmp_path: Path, pairs_folder: Path) -> None:
    broken = tmp_path / "broken"
    for source in pairs_folder.rglob("*.*"):
        target = broken / source.relative_to(pairs_folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        spoiled = source.parent.name == "right" and source.stem != "0"  # the first pair is read at once
        target.write_bytes(b"no image" if spoiled else source.read_bytes())
    each = trainer(make_recipe(ONE_STAGE, f"data.0.root={broken}", "run.workers=1"), None)
    with pytest.raises(AanetError) as caught:
        each.run()
    assert "right" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_checkpoint_that_does_not_fit_is_named(make_recipe: MakeRecipe, tmp_path: Path) -> None:
    trainer(make_recipe(ONE_STAGE), tmp_path).run(stop_after=1)
    with pytest.raises(UnsupportedError, match="does not fit the network"):
        trainer(make_recipe(ONE_STAGE, "network.max_disparity=48"), tmp_path).resume(tmp_path)
    other = make_recipe(ONE_STAGE, "network.name=stereonet", "network.initialization=paper")
    with pytest.raises(AanetError, match="a checkpoint of stereonet_aa; the recipe trains stereonet"):
        trainer(other, tmp_path).resume(tmp_path)
    with pytest.raises(ReadError, match="no checkpoint in"):
        trainer(make_recipe(ONE_STAGE), tmp_path).resume(tmp_path / "absent")


@pytest.mark.slow
def test_resume_takes_the_newest_undamaged_checkpoint(make_recipe: MakeRecipe, tmp_path: Path) -> None:
    recipe = make_recipe(ONE_STAGE)
    for stop in (1, 2, 3):
        each = trainer(recipe, tmp_path)
        if stop > 1:
            each.resume(tmp_path)
        each.run(stop_after=stop)
    _, second, third = checkpoints(tmp_path / "checkpoints")
    weights = bytearray((third / "weights.safetensors").read_bytes())
    weights[-1] ^= 1  # a single bit of a single weight
    (third / "weights.safetensors").write_bytes(weights)
    (second / "state.pt").unlink()
    each = trainer(recipe, tmp_path)
    each.resume(tmp_path)
    assert each.step == 1
    assert "step-00000003/weights.safetensors is damaged" in said(each)
    assert "step-00000002 is not a complete checkpoint" in said(each)
    assert "continuing from" in said(each)
    each.run()
    assert [path.name for path in checkpoints(tmp_path / "checkpoints")] == ["step-00000001", "step-00000004"]
    for path in checkpoints(tmp_path / "checkpoints"):
        (path / "facts.json").unlink()
    with pytest.raises(ReadError, match=r"All checkpoints in .* are damaged"):
        trainer(recipe, tmp_path).resume(tmp_path)


def test_a_checkpoint_whose_state_lacks_something_is_damaged(make_recipe: MakeRecipe, tmp_path: Path) -> None:
    recipe = make_recipe(ONE_STAGE)
    trainer(recipe, tmp_path).run(stop_after=1)
    (path,) = checkpoints(tmp_path / "checkpoints")
    whole = load_checkpoint(path, "stereonet_aa")
    for state in ({}, {**whole.state, "random": {}}, {**whole.state, "progress": {"hours": 1}}):
        save_checkpoint(path.parent, replace(whole, state=state))
        with pytest.raises(ReadError, match="All checkpoints"):
            trainer(recipe, None).resume(tmp_path)


def test_two_processes_do_not_train_in_one_folder(make_recipe: MakeRecipe, tmp_path: Path) -> None:
    each = trainer(make_recipe(ONE_STAGE), tmp_path)
    with locked(tmp_path), pytest.raises(UnsupportedError, match="Another process is training in"):
        each.run(stop_after=1)
    assert not (tmp_path / "manifest.json").exists()
    each.run(stop_after=1)  # the lock ends with the run that held it


def test_a_killed_process_leaves_no_steps_twice_in_the_log(tmp_path: Path) -> None:
    lines = [f'{{"kind": "training", "step": {step}}}\n' for step in (1, 2, 2, 3)]
    (tmp_path / "log.jsonl").write_text("".join(lines) + '{"kind": "training", "st')
    Reporter(tmp_path, Console(quiet=True)).continue_after(2)
    assert [record["step"] for record in records(tmp_path)] == [1, 2, 2]


def test_training_starts_from_given_weights(make_recipe: MakeRecipe, tmp_path: Path) -> None:
    trainer(make_recipe(ONE_STAGE), tmp_path).run(steps_per_stage=1)
    for name in ("weights", "weights-with-heads"):
        path = tmp_path / f"{name}.safetensors"
        started = trainer(make_recipe(ONE_STAGE, f"network.start_from={path}"), None).network
        expected = checkpoint.load(str(path)).state_dict()
        assert all(torch.equal(value, started.state_dict()[key]) for key, value in expected.items())
    with pytest.raises(UnsupportedError, match="maximum disparity of 24, but the recipe has 48"):
        trainer(make_recipe(ONE_STAGE, f"network.start_from={path}", "network.max_disparity=48"), None)


def test_inference_hints_survive_training(make_recipe: MakeRecipe, tmp_path: Path) -> None:
    """Losing them would change every prediction."""
    network = zoo.build("stereonet_aa", max_disparity=24)
    hints = InferenceHints(upscale_to=320, sharpen_edges=True, fill_border=True)
    checkpoint.save(network, tmp_path / "start.safetensors", hints=hints)
    recipe = make_recipe(ONE_STAGE, f"network.start_from={tmp_path / 'start.safetensors'}")
    trainer(recipe, tmp_path).run(steps_per_stage=1)
    for name in ("weights", "weights-with-heads"):
        assert checkpoint.read(tmp_path / f"{name}.safetensors").hints == hints


def test_a_command_that_is_repeated_waits_for_the_lock_of_the_one_before(tmp_path: Path) -> None:
    held = threading.Event()

    def hold() -> None:
        with locked(tmp_path):
            held.set()
            time.sleep(0.7)

    before = threading.Thread(target=hold)
    before.start()
    held.wait()
    with pytest.raises(UnsupportedError, match="Another process is training"):
        wait_until_free(tmp_path, seconds=0)
    wait_until_free(tmp_path, seconds=60)
    before.join()
