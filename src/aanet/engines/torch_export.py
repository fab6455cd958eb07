"""`torch.export` programs, for `.pt2` files written by `aanet export`."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import torch

from aanet.engines.torch import using_threads
from aanet.errors import ReadError
from aanet.inference import memory
from aanet.inference.description import ARCHIVE_FILE, Description, parse
from aanet.inference.spec import Maps
from aanet.typing import FloatMap


class ProgramEngine:
    """An exported PyTorch program on the CPU."""

    name = "torch"

    def __init__(self, path: Path, threads: int | None = None) -> None:
        files = {ARCHIVE_FILE: ""}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch warns about its own format
                program = torch.export.load(path, extra_files=files)
        except Exception as error:  # a damaged archive can raise any exception
            reason = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".")
            raise ReadError(
                f"{path} is not a program that torch {torch.__version__} can read ({reason})."
            ) from error
        self.exported: Description = parse(json.loads(files[ARCHIVE_FILE] or "{}"), path)
        self.spec = self.exported.spec
        self._program = program.module()
        self._threads = threads
        self.description = f"torch {torch.__version__.split('+')[0]}, exported, float32, cpu"

    def __call__(self, left: FloatMap, right: FloatMap) -> Maps:
        """See `Engine`."""
        pair = [torch.from_numpy(np.ascontiguousarray(image)) for image in (left, right)]
        with torch.inference_mode(), using_threads(self._threads):
            disparity, confidence = self._program(*pair)
        return disparity.numpy(), confidence.numpy()

    def available_memory(self) -> int:
        """Bytes of main memory."""
        return memory.available_memory()
