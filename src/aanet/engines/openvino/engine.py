"""The OpenVINO engine, which has a kernel for deformable convolutions and is the default on a CPU.

Once a weights file has been converted, predictions need neither torch nor the tensors in the file.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import openvino

from aanet.engines.bf16_support import may_be_default, require_bf16
from aanet.engines.openvino import cache
from aanet.errors import ReadError
from aanet.inference import memory
from aanet.inference.description import SECTION, Description, parse
from aanet.inference.spec import Maps, NetworkSpec, Precision
from aanet.typing import FloatMap

if TYPE_CHECKING:
    from aanet.models.network import StereoNetwork

_MAX_COMPILED_SIZES = 4  # a folder rarely has more image sizes, and each compiled model copies the weights


class OpenVINOEngine:
    """A converted network, compiled on demand for each batch and image size."""

    name = "openvino"

    def __init__(
        self,
        model: openvino.Model,
        spec: NetworkSpec,
        precision: Precision = "auto",
        threads: int | None = None,
    ) -> None:
        """Set the engine up; models are compiled later. The precision "auto" means float32 here.

        bf16 is refused if it does not work: OpenVINO would silently use float32, or crash if the processor
        reports instructions that it does not have.
        """
        half = precision == "bf16"
        if half:
            require_bf16("openvino")
        self.spec = spec
        self._core, self._model = openvino.Core(), model
        self._compiled: OrderedDict[tuple[int, ...], openvino.CompiledModel] = OrderedDict()
        self._lock = threading.Lock()
        threads = threads or threads_from_environment()
        self._properties = {
            # Without a hint, OpenVINO uses half precision if the processor supports it.
            "INFERENCE_PRECISION_HINT": "bf16" if half else "f32",
            "INFERENCE_NUM_THREADS": threads or 0,
            # Several processes would pin their threads to the same cores.
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
        """Open a weights file, converting it unless the conversion is cached.

        Args:
            path: A file of this package or a checkpoint of the authors.
            max_disparity: The search range, for networks whose weights do not fix it.
            precision: "float32"; "bf16", an error if it does not work (see `bf16_support`); or "auto": bf16
                if it works, is faster and almost as accurate with these weights (see `choose_precision`).
            threads: Number of threads; None uses `OMP_NUM_THREADS`, or else all cores.
        """
        if precision == "bf16":
            require_bf16("openvino")  # before a conversion that takes seconds
        key = cache.key_of(path, max_disparity, f"openvino {openvino.__version__}")
        cached = cache.load(key)
        if cached is None:
            from aanet.engines.graph import spec_of
            from aanet.engines.openvino.conversion import to_openvino
            from aanet.models.weights import checkpoint

            stored = checkpoint.read(path)
            network = stored.network(training_heads=False, max_disparity=max_disparity)
            model, spec = to_openvino(network), spec_of(network, stored.hints)

            def write(target: Path) -> NetworkSpec:
                openvino.save_model(model, target, compress_to_fp16=False)
                return spec

            cached = cache.store(key, write)
            if cached is None:
                return cls(model, spec, precision, threads)
        # The model is read back even right after storing it, so that all predictions are bitwise equal.
        model, spec = openvino.Core().read_model(cached.model), cached.spec
        if precision == "auto" and may_be_default("openvino"):
            from aanet.engines.openvino.precision import choose_precision

            precision = choose_precision(cached.model.parent, lambda tried: cls(model, spec, tried, threads))
        return cls(model, spec, precision, threads)

    @classmethod
    def from_network(
        cls, network: StereoNetwork, precision: Precision = "auto", threads: int | None = None
    ) -> OpenVINOEngine:
        """Convert a network in memory; the result is not cached, because the weights may change."""
        from aanet.engines.graph import spec_of
        from aanet.engines.openvino.conversion import to_openvino

        return cls(to_openvino(network), spec_of(network), precision, threads)

    @classmethod
    def from_exported(
        cls, path: Path, precision: Precision = "auto", threads: int | None = None
    ) -> tuple[OpenVINOEngine, Description]:
        """Open an .xml file written by `aanet export`; the precision "auto" means float32."""
        if not path.with_suffix(".bin").is_file():
            raise ReadError(f"The weights of {path} are missing: {path.with_suffix('.bin')} does not exist.")
        try:
            model = openvino.Core().read_model(path)
        except RuntimeError as error:
            raise ReadError(f"OpenVINO {openvino.__version__} cannot read the model {path}.") from error
        exported = parse(model.get_rt_info(SECTION).value if model.has_rt_info(SECTION) else {}, path)
        return cls(model, exported.spec, precision, threads), exported

    def __call__(self, left: FloatMap, right: FloatMap) -> Maps:
        """See `Engine`."""
        with self._lock:  # a compiled model runs one request at a time
            maps = self._compile(left.shape)([np.ascontiguousarray(left), np.ascontiguousarray(right)])
        return maps[0], maps[1]

    def available_memory(self) -> int:
        """Bytes of main memory."""
        return memory.available_memory()

    def _compile(self, shape: tuple[int, ...]) -> openvino.CompiledModel:
        if shape in self._compiled:
            self._compiled.move_to_end(shape)
            return self._compiled[shape]
        while len(self._compiled) >= _MAX_COMPILED_SIZES:
            self._compiled.popitem(last=False)
        model = self._model.clone()
        model.reshape({0: list(shape), 1: list(shape)})
        self._compiled[shape] = self._core.compile_model(model, "CPU", self._properties)
        return self._compiled[shape]


def threads_from_environment() -> int | None:
    """Return the number of threads in `OMP_NUM_THREADS`, which OpenVINO itself ignores."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdigit() and int(first) > 0 else None
