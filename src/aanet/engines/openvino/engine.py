"""The default engine on a CPU: OpenVINO, with its own kernel for deformable convolutions.

Once a file of weights has been converted, a prediction needs neither torch nor the file's tensors.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import openvino

from aanet.engines.bf16_support import require_bf16, worth_trying
from aanet.engines.openvino import cache
from aanet.errors import AanetError
from aanet.inference import memory
from aanet.inference.description import SECTION, Description, parse
from aanet.inference.spec import Maps, NetworkSpec, Precision
from aanet.typing import FloatMap

if TYPE_CHECKING:
    from aanet.models.network import StereoNetwork

_SIZES_KEPT = 4  # compiled sizes: a folder rarely mixes more, and each holds the network's weights once


class OpenVINOEngine:
    """A converted network, compiled for each batch and image size that comes."""

    name = "openvino"

    def __init__(
        self,
        model: openvino.Model,
        spec: NetworkSpec,
        precision: Precision = "auto",
        threads: int | None = None,
    ) -> None:
        """Compile nothing yet; "auto" is float32 here, because nothing is kept of a model in memory.

        bf16 is refused where it cannot be used: OpenVINO itself would take float32 without a word, or end the
        process where the processor announces instructions that it does not have.
        """
        half = precision == "bf16"
        if half:
            require_bf16("openvino")
        self.spec = spec
        self._core, self._model = openvino.Core(), model
        self._compiled: OrderedDict[tuple[int, ...], openvino.CompiledModel] = OrderedDict()
        self._lock = threading.Lock()
        threads = threads or threads_of_environment()
        self._properties = {
            # Without a hint OpenVINO takes half precision where the processor has it.
            "INFERENCE_PRECISION_HINT": "bf16" if half else "f32",
            "INFERENCE_NUM_THREADS": threads or 0,
            # Two processes that pin their threads pin them to the same cores.
            "ENABLE_CPU_PINNING": False,
        }
        version = openvino.__version__.split("-")[0]
        self.description = f"OpenVINO {version}, {'bf16' if half else 'float32'}, cpu"

    @classmethod
    def from_weights(
        cls,
        path: Path,
        max_disparity: int | None = None,
        precision: Precision = "auto",
        threads: int | None = None,
    ) -> OpenVINOEngine:
        """Open a file of weights, converting it if that was not done before.

        Args:
            path: A file of ours or of the authors.
            max_disparity: Search range, for networks whose weights do not fix it.
            precision: "float32", "bf16" where it works (see `bf16_support`), or "auto": bf16 where it works,
                is faster, and these weights lose next to nothing by it (see `half_precision`).
            threads: How many; None follows `OMP_NUM_THREADS`, or else takes every core.
        """
        if precision == "bf16":
            require_bf16("openvino")  # before a conversion that takes seconds
        key = cache.key_of(path, max_disparity, f"openvino {openvino.__version__}")
        kept = cache.load(key)
        if kept is None:
            from aanet.engines.graph import spec_of
            from aanet.engines.openvino.conversion import convert
            from aanet.models.weights import checkpoint

            stored = checkpoint.read(path)
            network = stored.network(training_heads=False, max_disparity=max_disparity)
            model, spec = convert(network), spec_of(network, stored.hints)

            def write(target: Path) -> NetworkSpec:
                openvino.save_model(model, target, compress_to_fp16=False)
                return spec

            kept = cache.store(key, write)
            if kept is None:
                return cls(model, spec, precision, threads)
        # Also after storing it: the first prediction then equals every later one to the last bit.
        model, spec = openvino.Core().read_model(kept.model), kept.spec
        if precision == "auto" and worth_trying("openvino"):
            from aanet.engines.openvino.precision import choose_precision

            precision = choose_precision(kept.model.parent, lambda tried: cls(model, spec, tried, threads))
        return cls(model, spec, precision, threads)

    @classmethod
    def from_network(
        cls, network: StereoNetwork, precision: Precision = "auto", threads: int | None = None
    ) -> OpenVINOEngine:
        """Convert a network in memory; nothing is kept, because its weights may change at any time."""
        from aanet.engines.graph import spec_of
        from aanet.engines.openvino.conversion import convert

        return cls(convert(network), spec_of(network), precision, threads)

    @classmethod
    def from_exported(
        cls, path: Path, precision: Precision = "auto", threads: int | None = None
    ) -> tuple[OpenVINOEngine, Description]:
        """Open an .xml file of `aanet export`; "auto" is float32."""
        if not path.with_suffix(".bin").is_file():
            raise AanetError(
                f"{path} needs {path.with_suffix('.bin').name} beside it, which holds its weights."
            )
        try:
            model = openvino.Core().read_model(path)
        except RuntimeError as error:
            raise AanetError(f"{path} is not a model that OpenVINO {openvino.__version__} reads.") from error
        exported = parse(model.get_rt_info(SECTION).value if model.has_rt_info(SECTION) else {}, path)
        return cls(model, exported.spec, precision, threads), exported

    def __call__(self, left: FloatMap, right: FloatMap) -> Maps:
        """See `Engine`."""
        with self._lock:  # a compiled model computes one request at a time
            maps = self._compile(left.shape)([np.ascontiguousarray(left), np.ascontiguousarray(right)])
        return maps[0], maps[1]

    def available_memory(self) -> int:
        """Bytes of main memory."""
        return memory.available_memory()

    def _compile(self, shape: tuple[int, ...]) -> openvino.CompiledModel:
        if shape in self._compiled:
            self._compiled.move_to_end(shape)
            return self._compiled[shape]
        while len(self._compiled) >= _SIZES_KEPT:
            self._compiled.popitem(last=False)
        model = self._model.clone()
        model.reshape({0: list(shape), 1: list(shape)})
        self._compiled[shape] = self._core.compile_model(model, "CPU", self._properties)
        return self._compiled[shape]


def threads_of_environment() -> int | None:
    """What `OMP_NUM_THREADS` asks for; OpenVINO itself does not look."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdigit() and int(first) > 0 else None
