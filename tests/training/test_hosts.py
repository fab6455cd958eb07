"""Training on two hosts gives the result of one, also if processes die on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from safetensors.torch import load_file

from aanet.training.checkpoint import checkpoints
from helpers.network_hosts import INTERFACE, NetworkHost, two_network_hosts

pytestmark = [pytest.mark.slow, pytest.mark.extended]
STEPS = 40
STAGE = f"""
[[stage]]
crop = [48, 96]
batch = 2
steps = {STEPS}
learning_rate = 1e-3
schedule = "cosine"
"""
PORT = 29517
# Output and errors of the processes are no matter for pytest's filter of warnings.
ENVIRONMENT = os.environ | {
    "OMP_NUM_THREADS": "1",
    "PYTHONWARNINGS": "ignore",
    "GLOO_SOCKET_IFNAME": INTERFACE,
}
SECONDS = 200  # a limit for what takes about 20
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]


@pytest.fixture(scope="module")
def recipe(recipe_text: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    # A data worker, which outlives a process that is killed, and a checkpoint after every step.
    path.write_text(recipe_text(STAGE).replace("workers = 0", "workers = 1\ncheckpoint_minutes = 0"))
    return path


@pytest.fixture(scope="module")
def one(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of two processes on one host, without interruptions."""
    folder = tmp_path_factory.mktemp("one")
    options = ["--standalone", "--nproc-per-node", "2"]
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "GLOO_SOCKET_IFNAME"}
    command = [*TORCHRUN, *options, *train(recipe, folder)]
    subprocess.run(command, check=True, env=environment, timeout=SECONDS)
    return folder


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[NetworkHost, NetworkHost]]:
    with two_network_hosts(tmp_path) as both:
        yield both
        for host in both:
            print(host.log.read_text(errors="replace"))  # shown if the test fails


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of the run on two hosts."""
    return tmp_path / "run"


def train(recipe: Path, folder: Path) -> list[str]:
    return ["-m", "aanet", "train", str(recipe), "--output", str(folder), "--auto-resume"]


def start(host: NetworkHost, first: NetworkHost, recipe: Path, folder: Path) -> subprocess.Popen[bytes]:
    """Start torchrun on a host, as documented, to meet the others at the first one."""
    meeting = [
        *("--rdzv-backend", "c10d", "--rdzv-endpoint", f"{first.address}:{PORT}", "--rdzv-id", "test"),
        *("--rdzv-conf", f"is_host={int(host is first)}", "--local-addr", host.address),
    ]
    options = ["--nnodes", "2", "--nproc-per-node", "1", "--max-restarts", "5", *meeting]
    return host.start([*TORCHRUN, *options, *train(recipe, folder)], ENVIRONMENT)


def finish(*processes: subprocess.Popen[bytes]) -> None:
    """Wait for the end of torchrun on all hosts."""
    assert [process.wait(timeout=SECONDS) for process in processes] == [0] * len(processes)


def losses(folder: Path) -> list[tuple[int, float, float]]:
    records: list[dict[str, Any]] = [
        json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()
    ]
    return [
        (each["step"], each["loss"], each["learning_rate"]) for each in records if each["kind"] == "training"
    ]


def assert_same(folder: Path, expected: Path) -> None:
    assert [step for step, *_ in losses(expected)] == list(range(1, STEPS + 1))
    assert losses(folder) == losses(expected)
    for name in ("weights.safetensors", "weights-with-heads.safetensors"):
        one, other = load_file(folder / name), load_file(expected / name)
        assert one.keys() == other.keys()
        assert all(torch.equal(value, other[key]) for key, value in one.items()), name


def wait_for_step(folder: Path, step: int, *processes: subprocess.Popen[bytes]) -> int:
    """Wait for a checkpoint of the step or a later one; returns its step."""
    deadline = time.monotonic() + SECONDS
    while True:
        found = checkpoints(folder / "checkpoints")
        reached = int(found[-1].name.partition("-")[2][:8]) if found else 0
        if reached >= step:
            return reached
        assert [process.poll() for process in processes] == [None] * len(processes)
        assert time.monotonic() < deadline
        time.sleep(0.02)


def trainer_of(rank: int, *torchruns: subprocess.Popen[bytes]) -> psutil.Process:
    """The training process of a rank."""
    for torchrun in torchruns:
        for process in psutil.Process(torchrun.pid).children():
            if process.environ().get("RANK") == str(rank):
                return process
    raise AssertionError(f"no process has rank {rank}")


def test_two_hosts_have_the_losses_of_one(
    hosts: tuple[NetworkHost, NetworkHost], recipe: Path, one: Path, run: Path
) -> None:
    finish(*(start(host, hosts[0], recipe, run) for host in hosts))
    assert_same(run, one)


def test_nothing_is_lost_with_a_process(
    hosts: tuple[NetworkHost, NetworkHost], recipe: Path, one: Path, run: Path
) -> None:
    first, second = hosts
    torchruns = start(first, first, recipe, run), start(second, first, recipe, run)
    step, ended = 0, set()
    # The process that writes the checkpoints, one that does not, and one that is asked to stop.
    for rank, number in ((0, signal.SIGKILL), (1, signal.SIGKILL), (1, signal.SIGTERM)):
        step = wait_for_step(run, step + 3, *torchruns)
        process = trainer_of(rank, *torchruns)
        assert process.pid not in ended
        process.send_signal(number)
        ended.add(process.pid)
        assert step < STEPS - 10
    finish(*torchruns)
    assert_same(run, one)
    assert not first.processes()
    assert not second.processes()
