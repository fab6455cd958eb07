"""The reference engine: PyTorch, any device, float32 or bf16."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import torch

from aanet.engines.bf16_support import require_bf16
from aanet.engines.folding import fold_batch_norms
from aanet.engines.graph import InferenceGraph, spec_of
from aanet.errors import UnsupportedError
from aanet.inference import memory
from aanet.inference.hints import InferenceHints
from aanet.inference.spec import Maps, Precision
from aanet.models.network import StereoNetwork
from aanet.typing import FloatMap


class TorchEngine:
    """Runs a copy of a network with folded batch norms; later training of the network does not affect it."""

    name = "torch"

    def __init__(
        self,
        network: StereoNetwork,
        device: str | None = None,
        precision: Precision = "auto",
        threads: int | None = None,
        hints: InferenceHints | None = None,
    ) -> None:
        self.spec = spec_of(network, hints)
        self.device = _device(device)
        self._graph = InferenceGraph(fold_batch_norms(network)).to(self.device)
        self._half = precision == "bf16"
        if self._half and self.device.type == "cpu":
            require_bf16("torch")
        self._threads = threads
        used = "bf16" if self._half else "float32"
        self.description = f"torch {torch.__version__.split('+')[0]}, {used}, {self.device}"

    def __call__(self, left: FloatMap, right: FloatMap) -> Maps:
        """See `Engine`."""
        pair = [
            torch.from_numpy(np.ascontiguousarray(image)).to(self.device, memory_format=torch.channels_last)
            for image in (left, right)
        ]
        half = torch.autocast(self.device.type, torch.bfloat16, enabled=self._half)
        with torch.inference_mode(), half, using_threads(self._threads):
            disparity, confidence = self._graph(*pair)
        return disparity.float().cpu().numpy(), confidence.float().cpu().numpy()

    def available_memory(self) -> int:
        """Bytes of device memory that a prediction may use."""
        if self.device.type == "cuda":
            return int(torch.cuda.mem_get_info(self.device)[0])
        return memory.available_memory()


def _device(name: str | None) -> torch.device:
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch asserts that it was built with CUDA
        reason = str(error).splitlines()[0].rstrip(".")
        raise UnsupportedError(f"The device {name!r} cannot be used: {reason}.") from error
    return device


@contextlib.contextmanager
def using_threads(count: int | None) -> Iterator[None]:
    """Use `count` threads inside the block; the number is global to the process and restored afterwards."""
    before = torch.get_num_threads()
    try:
        if count is not None:
            torch.set_num_threads(count)
        yield
    finally:
        torch.set_num_threads(before)
