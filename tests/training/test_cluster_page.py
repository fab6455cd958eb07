"""The commands, recipes and keys of docs/training-cluster.md exist, and its manifest is well-formed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command
from typer.testing import CliRunner

from aanet.cli.main import app
from aanet.training.recipe import load_recipe

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/training-cluster.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return [text for kind, text in fenced if kind == language]


def manifest() -> dict[str, Any]:
    (text,) = blocks("yaml")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def launches() -> list[list[str]]:
    """The words of every torchrun command: of the shell blocks and of the manifest."""
    lines = "\n".join(blocks("") + blocks("bash")).replace("\\\n", " ").splitlines()
    words = [shlex.split(line, comments=True) for line in lines if "torchrun" in line]
    (container,) = manifest()["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    return [*(each[each.index("torchrun") :] for each in words), container["command"]]


def test_the_manifest_mounts_what_it_uses() -> None:
    job = manifest()
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v1", "PyTorchJob")
    pod = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["name"] == "pytorch"  # the operator looks for this name
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts.keys() == {volume["name"] for volume in pod["volumes"]}
    assert all(word.startswith(mounts["shared"]) for word in container["command"] if word.startswith("/"))
    policy, replicas = job["spec"]["elasticPolicy"], job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"]
    assert policy["minReplicas"] == policy["maxReplicas"] == replicas
    assert policy["nProcPerNode"] == container["resources"]["limits"]["nvidia.com/gpu"]


def test_every_torchrun_option_exists() -> None:
    from torch.distributed.run import get_args_parser

    known = {option for action in get_args_parser()._actions for option in action.option_strings}
    assert len(launches()) == 3
    for words in launches():
        before = words[1 : words.index("aanet")]
        assert {word for word in before if word.startswith("--")} <= known
        assert "--no-python" in before


@pytest.mark.parametrize("words", launches(), ids=["hosts", "slurm", "kubernetes"])
def test_every_command_recipe_and_key_exists(words: list[str]) -> None:
    arguments = words[words.index("aanet") + 1 :]
    command = get_command(app).commands[arguments[0]]  # type: ignore[attr-defined]  # a group
    parsed = command.make_context("train", arguments[1:], resilient_parsing=True).params
    assert parsed["auto_resume"]
    assert str(parsed["output"]).startswith("/shared/runs/")
    recipe = parsed["recipe"]
    assert load_recipe(recipe, list(parsed["overrides"] or [])).stage
    for stage in load_recipe(recipe).stage:
        assert stage.batch % (8 * stage.accumulate) == 0  # two hosts with four processes, as on the page


def test_options_and_keys_in_the_text_exist() -> None:
    help_text = CliRunner().invoke(app, ["train", "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).output
    ours = {"--auto-resume", "--resume", "--output", "--set"}
    assert all(option in PAGE and option in help_text for option in ours)
    recipe = load_recipe("kitti2015-aanet")
    assert "`run.checkpoint_minutes`, 10 by default" in PAGE
    assert recipe.run.checkpoint_minutes == 10
    for key in ("accumulate", "batch", "epochs", "frozen_batch_norm"):
        assert f"`{key}" in PAGE
        assert hasattr(recipe.stage[0], key)


def test_the_training_page_leads_here() -> None:
    assert "](training-cluster.md)" in (ROOT / "docs/training.md").read_text(encoding="utf-8")
