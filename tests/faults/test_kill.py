"""A process that is killed at any moment loses nothing, mixes nothing, and the next command works."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers import crash_points

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="interrupts forks of a process")
SCRIPT = Path(crash_points.__file__)


def interrupted(scenario: str, folder: Path, every: int = 1) -> dict[str, Any]:
    """The result of `crash_points`, after checking what holds for every scenario."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), scenario, str(folder), str(every)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert len(result["runs"]) > 2
    for run in result["runs"]:
        assert run["signal"] == signal.SIGKILL, run
        assert run["went_on"]["error"] is None, (run["change"], run["went_on"]["error"])
        assert run["leftovers"] == 0, run["change"]
    return result


def assert_whole(result: dict[str, Any]) -> None:
    """Every file that an interruption left is the older or the new one, and going on gives all new ones."""
    for run in result["runs"]:
        for name, digest in run["left"].items():
            assert digest in (result["before"].get(name), result["whole"].get(name)), (run["change"], name)
        assert run["after"] == result["whole"], run["change"]


def test_a_file_is_the_older_or_the_new_one(tmp_path: Path) -> None:
    result = interrupted("one_file", tmp_path)
    assert_whole(result)
    assert all(run["left"].keys() == {"file"} for run in result["runs"])


def test_files_of_one_result_are_never_old_beside_new(tmp_path: Path) -> None:
    result = interrupted("outputs_over_older_ones", tmp_path)
    assert_whole(result)
    for run in result["runs"]:
        assert len(set(run["left"].values())) <= 1, run
    assert len(result["runs"][0]["left"]) == 3  # nothing is removed before everything is written


def test_an_export_is_the_older_or_the_new_one(tmp_path: Path) -> None:
    result = interrupted("export_over_an_older_one", tmp_path)
    found = [run["went_on"]["returned"] for run in result["runs"]]
    assert sorted(found) == found  # the older one, until the new one takes its place
    assert set(found) == {"random 1.0", "random 2.0"}
    pair, new = ("model.xml", "model.bin"), result["whole"]
    assert [new[name] for name in pair] == [new[f"new/{name}"] for name in pair]
    for run in result["runs"]:
        assert run["after"] == new
        # Another runtime takes the two files as they are: both are of one export, or one is missing.
        seen = [run["left"].get(name) for name in pair]
        assert None in seen or seen in [[state[name] for name in pair] for state in (result["before"], new)]


def test_a_cache_entry_is_whole_or_absent(tmp_path: Path) -> None:
    result = interrupted("cache_entry_over_a_damaged_one", tmp_path)
    assert_whole(result)


@pytest.mark.slow
def test_predict_resumes_to_the_same_files(tmp_path: Path) -> None:
    result = interrupted("prediction", tmp_path)
    assert_whole(result)
    assert len([name for name in result["whole"] if name.startswith("out/")]) == 4


@pytest.mark.slow
@pytest.mark.extended
def test_synthesized_pairs_are_complete_or_not_found(tmp_path: Path) -> None:
    result = interrupted("synthesis", tmp_path, every=6)
    assert_whole(result)
    found = [run["went_on"]["returned"] for run in result["runs"]]
    assert sorted(found) == found
    assert {*found} == {0, 1, 2}


@pytest.mark.slow
def test_converted_weights_are_the_older_or_the_new_ones(tmp_path: Path) -> None:
    assert_whole(interrupted("conversion", tmp_path))


@pytest.mark.slow
@pytest.mark.extended
def test_an_exported_network_can_be_opened_after_any_interruption(tmp_path: Path) -> None:
    result = interrupted("exported_network", tmp_path, every=3)
    found = [run["went_on"]["returned"] for run in result["runs"]]
    assert sorted(found, reverse=True) == found
    assert found[0] == "random 1.0"
    assert {*found} <= {"random 1.0", "random"}
    assert all(run["after"].keys() == {"model.xml", "model.bin"} for run in result["runs"])


@pytest.mark.slow
@pytest.mark.extended
def test_training_resumes_to_the_same_weights(tmp_path: Path) -> None:
    result = interrupted("training", tmp_path, every=9)
    weights = [name for name in result["whole"] if name.endswith(".safetensors") and "/step-" not in name]
    assert len(weights) == 2
    for run in result["runs"]:
        assert [run["after"][name] for name in weights] == [result["whole"][name] for name in weights]
        assert run["went_on"]["returned"] == [1, 2, 3]  # each step is logged once
