"""The workflows fit `pyproject.toml` and the Makefile; actionlint (`make lint-workflows`) checks the rest."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers.wheel_environment import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def promised() -> list[str]:
    """The Pythons that the classifiers name."""
    return re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))


def test_every_promised_python_is_tested_on_three_systems() -> None:
    matrix = read(ROOT / ".github/workflows/tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == promised()
    assert [system.partition("-")[0] for system in matrix["os"]] == ["ubuntu", "macos", "windows"]


def test_the_lowest_promised_python_is_that_of_the_tools() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert PROJECT["requires-python"] == f">={promised()[0]}"
    assert settings["tool"]["mypy"]["python_version"] == promised()[0]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_and_rights_are_few(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}  # jobs ask for more one by one
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 90
    for step in steps(workflow):
        assert "uses" not in step or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"]), step
        assert "checkout" not in step.get("uses", "") or step["with"]["persist-credentials"] is False
        assert "${{" not in step.get("run", ""), "a value in a script is code; hand it over in env"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_what_the_steps_call_exists(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][\w-]*):", makefile, re.MULTILINE)) | {"docs"}
    for step in steps(read(path)):
        script = step.get("run", "")
        assert set(re.findall(r"\bmake ([\w-]+)", script)) <= targets
        assert all((ROOT / file).is_file() for file in re.findall(r"\bscripts/\w+\.\w+", script))


def test_only_a_tag_is_published_and_only_what_was_tested() -> None:
    jobs = read(ROOT / ".github/workflows/publish.yml")["jobs"]
    publish = jobs["publish"]
    assert publish["if"] == "github.ref_type == 'tag'"
    assert (publish["needs"], jobs["test"]["needs"]) == ("test", "build")
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"]["name"] == "pypi"
    assert not any("password" in step.get("with", {}) for step in publish["steps"])
    assert any("attest" in step.get("uses", "") for step in jobs["build"]["steps"])
