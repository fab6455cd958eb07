"""Export to a `torch.export` program, which contains only PyTorch's own operators."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from aanet.export.recording import quiet_exporters, record
from aanet.inference.description import ARCHIVE_FILE, Description
from aanet.models.network import StereoNetwork


def write_program(network: StereoNetwork, description: Description, path: Path) -> None:
    """Write a network, prepared by `simplify`, with its description inside the archive."""
    program = record(network, description.size)
    with quiet_exporters():
        torch.export.save(program, path, extra_files={ARCHIVE_FILE: json.dumps(description.properties())})
