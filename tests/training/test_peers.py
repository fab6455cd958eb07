"""What is wrong in one of several processes ends all of them, in one sentence each, with exit code 2."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from aanet.errors import InputError, UnsupportedError
from aanet.training.environment import make_fabric
from aanet.training.peers import Peers
from aanet.training.recipe import Recipe

STAGE = """
[[stage]]
name = "all"
crop = [48, 96]
batch = 2
steps = 1
learning_rate = 1e-3
"""
OTHER_VERSION = (
    "import aanet.version; aanet.version.__version__ = '0.0.1'; from aanet.cli.main import main; main()"
)
EXTENDED = pytest.mark.extended
AANET = [sys.executable, "-m", "aanet"]


@pytest.fixture
def recipe(make_recipe: Callable[..., Recipe], tmp_path: Path) -> Path:
    make_recipe(STAGE)
    return tmp_path / "tiny.toml"


def run_both(*commands: list[str]) -> list[tuple[int, str]]:
    """Run one process on each of two hosts, without torchrun; returns their exit codes and last lines."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0", "GROUP_WORLD_SIZE": "2"}
    common |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    common |= {"TORCHELASTIC_RUN_ID": "test", "PYTHONWARNINGS": "ignore"}
    processes = [
        subprocess.Popen(
            command,
            env=os.environ | common | {"RANK": str(rank), "GROUP_RANK": str(rank)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, command in enumerate(commands)
    ]
    try:
        errors = [process.communicate(timeout=120)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    lines = [[line for line in text.splitlines() if line.startswith("aanet: ")] for text in errors]
    assert all("Traceback" not in text for text in errors), errors
    assert [len(each) for each in lines] == [1, 1], errors
    return [(process.returncode, line) for process, (line,) in zip(processes, lines, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "program", "sentence"),
    [
        (["--set", "seed=1"], AANET, "must have the same recipe and --set options"),
        pytest.param(["--auto-resume"], AANET, "must have the same options", marks=EXTENDED),
        pytest.param(["--output", "{elsewhere}"], AANET, "{elsewhere} is not shared", marks=EXTENDED),
        (["--set", "run.wokers=1"], AANET, "did you mean 'workers'"),
        pytest.param(
            [],
            [sys.executable, "-c", OTHER_VERSION],
            "must have the same version of aanet",
            marks=EXTENDED,
        ),
    ],
    ids=["recipes", "options", "folders", "mistake", "versions"],
)
def test_hosts_that_differ_are_refused_in_both(
    options: list[str], program: list[str], sentence: str, recipe: Path, tmp_path: Path
) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    train = ["train", str(recipe), "--output", str(tmp_path / "run")]
    other = [each.format(elsewhere=elsewhere) for each in options]
    ended = run_both([*AANET, *train], [*program, *train, *other])
    for code, line in ended:
        assert code == 2
        assert sentence.format(elsewhere=elsewhere) in line
    assert "process 1 on" in ended[0][1]
    assert not list(tmp_path.glob("run/*"))


@pytest.mark.slow
def test_torchrun_reports_the_exit_code_of_every_process(recipe: Path, tmp_path: Path) -> None:
    options = ["--standalone", "--nproc-per-node", "2", "-m", "aanet", "train", str(recipe)]
    ended = subprocess.run(
        [
            *AANET[:2],
            "torch.distributed.run",
            *options,
            "-o",
            str(tmp_path / "run"),
            "--set",
            "stage.0.batch=3",
        ],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 1  # torchrun's own
    assert ended.stderr.count("aanet: stage 'all': a batch of 3 pairs cannot be split evenly") == 2
    assert ended.stderr.count("exitcode  : 2") == 2


def test_hosts_with_different_numbers_of_processes_are_refused(
    make_recipe: Callable[..., Recipe], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("LOCAL_WORLD_SIZE", "2"), ("WORLD_SIZE", "3"), ("GROUP_WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    with pytest.raises(UnsupportedError, match="Every host must start the same number of processes"):
        make_fabric(make_recipe(STAGE))


def test_a_process_alone_agrees_with_itself(tmp_path: Path) -> None:
    alone = Peers()
    alone.compare({"version": "1"})
    alone.require_shared(tmp_path / "absent")
    assert not (tmp_path / "absent").exists()
    with pytest.raises(InputError, match="mine"), alone.together():
        raise InputError("mine")
