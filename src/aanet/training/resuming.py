"""Checkpoints for all processes of a run, read by the first one, so that all continue from the same state."""

from __future__ import annotations

from pathlib import Path

from lightning.fabric import Fabric

from aanet.errors import AanetError
from aanet.training.checkpoint import TrainingState, checkpoints, load_checkpoint
from aanet.training.peers import Peers


def find_checkpoints(fabric: Fabric, peers: Peers, run: Path) -> list[Path]:
    """Return the checkpoints in a run's folder, oldest first, as the first process sees them."""
    with peers.together():
        found = checkpoints(run / "checkpoints") if fabric.is_global_zero else []
    return fabric.broadcast(found)


def read_checkpoint(fabric: Fabric, path: Path, network: str) -> TrainingState:
    """Read a checkpoint as `load_checkpoint` does, in the first process, and hand it or its error to all."""
    read: TrainingState | AanetError | None = None
    if fabric.is_global_zero:
        try:
            read = load_checkpoint(path, network)
        except AanetError as error:
            read = error
    read = fabric.broadcast(read)
    if isinstance(read, AanetError):
        raise read
    assert read is not None
    return read


def where_exactness_ends(before: int, now: int) -> str:
    """Say what it means that a run continues with another number of processes."""
    had = "1 process" if before == 1 else f"{before} processes"
    return (
        f"The run had {had} and continues with {now}: the order of pairs goes on, but batch norms that are "
        "not frozen see other parts of each batch and sums are rounded differently, so the losses are not "
        "exactly those of an uninterrupted run."
    )
