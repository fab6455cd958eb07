"""Export to a `torch.export` program, which contains only PyTorch's own operators.

Programs are written but not accepted as models: `torch.export.load` unpickles objects and evaluates
expressions in the file, both of which can execute code.
"""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path

import numpy as np
import torch

from aanet.export.recording import quiet_exporters, record
from aanet.inference import memory
from aanet.inference.description import ARCHIVE_FILE, Description, parse
from aanet.inference.spec import Maps
from aanet.models.network import StereoNetwork
from aanet.typing import FloatMap


def write_program(network: StereoNetwork, description: Description, path: Path) -> None:
    """Write a network, prepared by `simplify`, with its description inside the archive."""
    program = record(network, description.size)
    content = io.BytesIO()  # torch reports a full disk in its own words
    with quiet_exporters():
        torch.export.save(program, content, extra_files={ARCHIVE_FILE: json.dumps(description.properties())})
    path.write_bytes(content.getvalue())


class ProgramEngine:
    """A program that this process has written, on the CPU, for the comparison with PyTorch."""

    name = "torch"

    def __init__(self, path: Path) -> None:
        files = {ARCHIVE_FILE: ""}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about its own format
            self._program = torch.export.load(path, extra_files=files).module()
        self.spec = parse(json.loads(files[ARCHIVE_FILE]), path).spec
        self.description = f"torch {torch.__version__.split('+')[0]}, exported, float32, cpu"

    def __call__(self, left: FloatMap, right: FloatMap) -> Maps:
        """See `Engine`."""
        pair = [torch.from_numpy(np.ascontiguousarray(image)) for image in (left, right)]
        with torch.inference_mode():
            disparity, confidence = self._program(*pair)
        return disparity.numpy(), confidence.numpy()

    def available_memory(self) -> int:
        """Bytes of main memory."""
        return memory.available_memory()
