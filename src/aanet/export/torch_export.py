"""Network → `torch.export` program: PyTorch's own operators only, so that any PyTorch loads it."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from aanet.export.recording import record, without_exporters_chatter
from aanet.inference.description import ARCHIVE_FILE, Description
from aanet.models.network import StereoNetwork


def write_program(network: StereoNetwork, description: Description, path: Path) -> None:
    """Write a network, simplified for export, with its description inside the archive."""
    program = record(network, description.size)
    with without_exporters_chatter():
        torch.export.save(program, path, extra_files={ARCHIVE_FILE: json.dumps(description.properties())})
