"""The OpenVINO engine, which has a kernel for deformable convolutions and is the default on a CPU.

Once a weights file has been converted, predictions need neither torch nor the tensors in the file.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino

from aanet.engines.bf16_support import may_be_default, require_bf16
from aanet.engines.openvino import cache
from aanet.engines.openvino.pair_files import digest, read_pair, save_model
from aanet.errors import ReadError
from aanet.inference import memory
from aanet.inference.description import SECTION, WEIGHTS_DIGEST, Description, parse
from aanet.inference.spec import Maps, NetworkSpec, Precision, require_maps
from aanet.typing import FloatMap

if TYPE_CHECKING:
    from aanet.models.network import StereoNetwork

_log = logging.getLogger(__name__)
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
        self._properties = cpu_properties(half, threads)
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
        model = None if cached is None else _read_cached(cached)
        if cached is None or model is None:
            converted, spec = _convert(path, max_disparity)

            def write(target: Path) -> NetworkSpec:
                save_model(converted, target)
                return spec

            cached = cache.store(key, write)
            # The model is read back right after storing it, so that all predictions are bitwise equal.
            model = None if cached is None else _read_cached(cached)
            if cached is None or model is None:
                return cls(converted, spec, precision, threads)
        spec = cached.spec
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
        content, weights = read_pair(path)
        try:
            model = openvino.Core().read_model(content, weights)
            properties = model.get_rt_info(SECTION).value if model.has_rt_info(SECTION) else {}
        except Exception as error:  # a RuntimeError, or UnicodeDecodeError for damaged text
            raise ReadError(f"OpenVINO {openvino.__version__} cannot read the model {path}.") from error
        exported = parse(properties if isinstance(properties, dict) else {}, path)
        if properties.get(WEIGHTS_DIGEST) != digest(weights):
            raise ReadError(
                f"{path.with_suffix('.bin')} is damaged, or it is not the file that was exported with {path}."
            )
        return cls(model, exported.spec, precision, threads), exported

    def __call__(self, left: FloatMap, right: FloatMap) -> Maps:
        """See `Engine`."""
        with self._lock:  # a compiled model runs one request at a time
            maps = self._compile(left.shape)([np.ascontiguousarray(left), np.ascontiguousarray(right)])
        return require_maps(list(maps.values()), left, self.spec.name)

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
        try:
            model.reshape({0: list(shape), 1: list(shape)})
            self._compiled[shape] = self._core.compile_model(model, "CPU", self._properties)
        except (RuntimeError, IndexError) as error:  # IndexError if the model has only one input
            size = f"{shape[2]}×{shape[3]}"
            raise ReadError(
                f"OpenVINO cannot run the model {self.spec.name} for images of {size}."
            ) from error
        return self._compiled[shape]


def _convert(path: Path, max_disparity: int | None) -> tuple[openvino.Model, NetworkSpec]:
    """Convert a weights file; only this needs torch."""
    from aanet.engines.graph import spec_of
    from aanet.engines.openvino.conversion import to_openvino
    from aanet.models.weights import checkpoint

    stored = checkpoint.read(path)
    network = stored.network(training_heads=False, max_disparity=max_disparity)
    return to_openvino(network), spec_of(network, stored.hints)


def _read_cached(cached: cache.Converted) -> openvino.Model | None:
    """Read a cached model; None if OpenVINO refuses it, or if another process has just removed it."""
    try:
        return openvino.Core().read_model(cached.model)
    except RuntimeError:
        _log.warning("OpenVINO cannot read the converted network %s; it is converted again.", cached.model)
        cache.discard(cached)  # its digest is correct, so that it would never be replaced
        return None


def cpu_properties(half: bool, threads: int | None) -> dict[str, Any]:
    """Return the properties with which networks are compiled."""
    return {
        # Without a hint, OpenVINO uses half precision if the processor supports it.
        "INFERENCE_PRECISION_HINT": "bf16" if half else "f32",
        "INFERENCE_NUM_THREADS": threads or threads_from_environment() or 0,
        # Several processes would pin their threads to the same cores.
        "ENABLE_CPU_PINNING": False,
    }


def threads_from_environment() -> int | None:
    """Return the number of threads in `OMP_NUM_THREADS`, which OpenVINO itself ignores."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdigit() and int(first) > 0 else None
