"""Setup of the training loop: processes, seeds, signals, the network and the validation sets."""

from __future__ import annotations

import atexit
import contextlib
import os
import random
import signal
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FrameType

import numpy as np
import torch
import torch.distributed
from lightning.fabric import Fabric
from lightning.fabric.strategies.ddp import DDPStrategy

from aanet.engines.bf16_support import require_bf16
from aanet.errors import InputError, UnsupportedError
from aanet.inference.hints import InferenceHints
from aanet.models import zoo
from aanet.models.network import StereoNetwork
from aanet.models.weights import checkpoint
from aanet.synthetic import SyntheticWorld
from aanet.training.batches import open_source
from aanet.training.peers import Peers
from aanet.training.recipe import Recipe
from aanet.training.transfer import start_from
from aanet.training.validation import ValidationSet


def make_fabric(recipe: Recipe) -> Fabric:
    """Create a Fabric for one process, or for those that `torchrun` started; checks accelerator and bf16."""
    run = recipe.run
    _require_accelerator(run.accelerator)
    if run.precision == "bf16-mixed" and _runs_on_cpu(run.accelerator):
        require_bf16("torch")
    if "LOCAL_WORLD_SIZE" not in os.environ:
        return Fabric(accelerator=run.accelerator, devices=1, precision=run.precision)
    # Harmless: the memory layout of 1×1 kernels has two equivalent descriptions.
    warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides")
    # The heads of coarser predictions get no gradient when only the finest prediction has a loss.
    has_unused = any(stage.loss == "finest" for stage in recipe.stage)
    local, world = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["WORLD_SIZE"])
    hosts = int(os.environ.get("GROUP_WORLD_SIZE", world // local))
    if local * hosts != world:
        raise UnsupportedError(
            f"Every host must start the same number of processes; this one starts {local}, and {hosts} hosts "
            f"start {world}."
        )
    return Fabric(
        accelerator=run.accelerator,
        strategy=DDPStrategy(find_unused_parameters=has_unused),
        devices=local,
        num_nodes=hosts,
        precision=run.precision,
    )


def launch(fabric: Fabric, peers: Peers) -> None:
    """Join the other processes, if there are any.

    Not by torch's own store: torchrun may keep it over a restart, and its processes then look for each
    other at the addresses of those that have ended.
    """
    if peers.count > 1:
        nccl = fabric.device.type == "cuda"
        torch.distributed.init_process_group(
            "nccl" if nccl else "gloo", store=peers.store(), rank=peers.rank, world_size=peers.count
        )
        if nccl:  # as Fabric does: its threads must not outlive the interpreter
            atexit.register(torch.distributed.destroy_process_group)
    fabric.launch()


def _require_accelerator(name: str) -> None:
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not available.get(name, True):
        raise UnsupportedError(
            f'The recipe sets run.accelerator = "{name}", but PyTorch finds no such device on this machine; '
            "add --set run.accelerator=auto to train on the devices that it has."
        )


def _runs_on_cpu(accelerator: str) -> bool:
    """Whether Fabric will choose the CPU, found out without creating one, which prints its precision."""
    if accelerator == "auto":
        return not (torch.cuda.is_available() or torch.backends.mps.is_available())
    return accelerator == "cpu"


def seed_everything(seed: int) -> None:
    """Seed the global generators; data uses its own generators, seeded per pair."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the global generator, which libraries may use
    torch.manual_seed(seed)


def prepare_network(recipe: Recipe) -> tuple[StereoNetwork, InferenceHints]:
    """The network of a recipe with its training heads, on the weights it starts from, and their hints."""
    spec = recipe.network
    source = checkpoint.read(spec.start_from) if spec.start_from else None
    inherited = None if source is None else source.architecture.regression
    network = zoo.build(
        spec.name,
        max_disparity=spec.max_disparity,
        training_heads=True,
        initialization=spec.initialization,
        regression=spec.regression or inherited,
    )
    if source is None:
        return network, InferenceHints()
    start_from(network, source.network())
    return network, source.hints


@contextlib.contextmanager
def on_stop_signal(ask_to_stop: Callable[[], None]) -> Iterator[None]:
    """Call `ask_to_stop` on SIGTERM or the first Ctrl-C; a second Ctrl-C interrupts at once."""

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        ask_to_stop()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    # PyTorch's loader leaves a SIGCHLD handler behind; if the process runs OpenVINO later, the end of
    # any child then kills it.
    if hasattr(signal, "SIGCHLD"):
        before[signal.SIGCHLD] = signal.getsignal(signal.SIGCHLD)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def open_validation(recipe: Recipe) -> list[ValidationSet]:
    """Open the validation sets of a recipe; sets of the same name are numbered.

    One without a `root` is in the folder of the training data of the same name.
    """
    roots = {spec.name: spec.root for spec in reversed(recipe.data)}
    sets: list[ValidationSet] = []
    for spec in recipe.validation.data:
        spec = replace(spec, root=spec.root or roots.get(spec.name, ""))
        source = open_source(spec, recipe.stage[-1].crop, recipe.network.max_disparity)
        if not isinstance(source, SyntheticWorld) and source[0].disparity is None:
            raise InputError(f"{source[0].name} has no ground truth to validate on.")
        same = sum(each.name.startswith(spec.name) for each in sets)
        name = f"{spec.name}-{same + 1}" if same else spec.name
        sets.append(ValidationSet(name, source, recipe.validation.limit))
    return sets
