"""Running a foreign network on arrays by name: OpenVINO first, ONNX Runtime for what it cannot convert."""

from __future__ import annotations

import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import openvino
from numpy.typing import NDArray
from openvino.frontend import FrontEndManager

from aanet.engines.bf16_support import require_bf16
from aanet.engines.foreign.files import TITLES, Facts, NetworkFile, check
from aanet.engines.foreign.graph import Graph, Port
from aanet.engines.foreign.tensorflow_graph import without_tiles
from aanet.engines.openvino.engine import cpu_properties, threads_from_environment
from aanet.engines.table import Options
from aanet.errors import AanetError, ReadError, UnsupportedError

Arrays = dict[str, NDArray[Any]]

_FRAMEWORKS = {"onnx": "onnx", "tensorflow": "tf"}
_MAX_COMPILED_SIZES = 4


class Runner(Protocol):
    """Runs a network."""

    name: str  # as in `aanet.engines.table.ENGINES`
    description: str
    graph: Graph

    def __call__(self, inputs: Mapping[str, NDArray[Any]]) -> Arrays:
        """Compute all outputs, by the names of the ports."""


def open_runner(file: NetworkFile, engine: str | None, options: Options) -> Runner:
    """Open a network with the engine of that name, or with the first that can.

    Args:
        file: The network.
        engine: "openvino" or "onnxruntime"; None for either.
        options: Precision and threads.
    """
    if engine not in (None, "openvino", "onnxruntime") or (engine == "onnxruntime" and file.kind != "onnx"):
        raise UnsupportedError(f"{file.path} ({TITLES[file.kind]}) does not run on the engine {engine}.")
    facts = check(file)
    if engine == "onnxruntime":
        return OnnxRuntimeRunner(file, facts, options)
    try:
        return OpenVINORunner(file, facts, options)
    except AanetError as refusal:
        if file.kind != "onnx" or engine is not None or options.precision == "bf16":
            raise
        try:
            runner = OnnxRuntimeRunner(file, facts, options)
        except AanetError:
            raise refusal from None
    runner.description += " (OpenVINO cannot convert the network)"
    return runner


class OpenVINORunner:
    """A network that OpenVINO has converted, compiled on demand for each size of its inputs."""

    name = "openvino"

    def __init__(self, file: NetworkFile, facts: Facts, options: Options) -> None:
        half = options.precision == "bf16"
        if half:
            require_bf16("openvino")
        self._path, self._core = file.path, openvino.Core()
        self._properties = cpu_properties(half, options.threads)
        self._compiled: OrderedDict[tuple[Any, ...], openvino.CompiledModel] = OrderedDict()
        self._lock = threading.Lock()
        version = openvino.__version__.split("-")[0]
        try:
            self._model = _convert(file, self._core)
            inputs = tuple(_openvino_port(each) for each in self._model.inputs)
            outputs = tuple(_openvino_port(each) for each in self._model.outputs)
            parameters = _parameters(self._model)
        except Exception as error:  # RuntimeError and openvino.frontend's own
            raise ReadError(f"OpenVINO {version} cannot read {file.path}: {_reason(error)}.") from error
        self.description = f"OpenVINO {version}, {'bf16' if half else 'float32'}, cpu"
        self.graph = Graph(
            TITLES[file.kind],
            facts.producer,
            facts.opset,
            inputs,
            outputs,
            parameters,
            self.name,
            self.description,
        )

    def __call__(self, inputs: Mapping[str, NDArray[Any]]) -> Arrays:
        """See `Runner`."""
        arrays = [np.ascontiguousarray(inputs[port.name]) for port in self.graph.inputs]
        try:
            with self._lock:  # a compiled model runs one request at a time
                results = self._compile(tuple(each.shape for each in arrays))(arrays)
                found = [np.array(results[index]) for index in range(len(self.graph.outputs))]
        except Exception as error:
            raise _cannot_run(self._path, "OpenVINO", arrays, error) from error
        return {port.name: each for port, each in zip(self.graph.outputs, found, strict=True)}

    def _compile(self, shapes: tuple[tuple[int, ...], ...]) -> openvino.CompiledModel:
        if shapes in self._compiled:
            self._compiled.move_to_end(shapes)
            return self._compiled[shapes]
        while len(self._compiled) >= _MAX_COMPILED_SIZES:
            self._compiled.popitem(last=False)
        model = self._model.clone()
        model.reshape({index: list(shape) for index, shape in enumerate(shapes)})
        self._compiled[shapes] = self._core.compile_model(model, "CPU", self._properties)
        return self._compiled[shapes]


class OnnxRuntimeRunner:
    """An ONNX network on ONNX Runtime's CPU kernels."""

    name = "onnxruntime"

    def __init__(self, file: NetworkFile, facts: Facts, options: Options) -> None:
        if options.precision == "bf16":
            raise UnsupportedError(f"ONNX Runtime runs {file.path} in float32; leave bf16 out.")
        from aanet.engines.onnxruntime import ERRORS_ONLY
        from aanet.engines.onnxruntime import runtime as onnxruntime

        self._path = file.path
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = options.threads or threads_from_environment() or 0
        settings.log_severity_level = ERRORS_ONLY
        version = onnxruntime.__version__
        try:
            self._session = onnxruntime.InferenceSession(
                file.content, settings, providers=["CPUExecutionProvider"]
            )
            inputs = tuple(_onnx_port(each) for each in self._session.get_inputs())
            outputs = tuple(_onnx_port(each) for each in self._session.get_outputs())
        except Exception as error:  # the runtime's errors have no common base class
            raise ReadError(f"ONNX Runtime {version} cannot read {file.path}: {_reason(error)}.") from error
        self.description = f"ONNX Runtime {version}, float32, cpu"
        self.graph = Graph(
            TITLES[file.kind], facts.producer, facts.opset, inputs, outputs, None, self.name, self.description
        )

    def __call__(self, inputs: Mapping[str, NDArray[Any]]) -> Arrays:
        """See `Runner`."""
        given = {port.name: np.ascontiguousarray(inputs[port.name]) for port in self.graph.inputs}
        names = [port.name for port in self.graph.outputs]
        try:
            return dict(zip(names, self._session.run(names, given), strict=True))
        except Exception as error:
            raise _cannot_run(self._path, "ONNX Runtime", list(given.values()), error) from error


def _convert(file: NetworkFile, core: openvino.Core) -> openvino.Model:
    """Convert with the front end of the file's own kind only, from a copy that no other file lies beside."""
    if file.kind == "openvino":
        return core.read_model(file.content, file.weights)
    front_end = FrontEndManager().load_by_framework(_FRAMEWORKS[file.kind])
    with tempfile.TemporaryDirectory(prefix="aanet-") as folder:
        copy = Path(folder) / f"network{file.path.suffix.lower()}"
        copy.write_bytes(file.content if file.kind == "onnx" else without_tiles(file.content))
        return front_end.convert(front_end.load(os.fspath(copy)))


def _openvino_port(port: Any) -> Port:
    names = tuple(sorted(port.names, key=lambda name: (len(name), name))) or (port.node.friendly_name,)
    partial = port.partial_shape
    shape = None
    if partial.rank.is_static:
        shape = tuple(side.get_length() if side.is_static else None for side in partial)
    return Port(
        _preferred(names).removesuffix(":0"), names, shape, np.dtype(port.element_type.to_dtype()).name
    )


def _preferred(names: tuple[str, ...]) -> str:
    """Return the name for people: not one of those inside a block, which have a path."""
    return min(names, key=lambda name: ("/" in name, len(name), name))


def _onnx_port(port: Any) -> Port:
    kind = {"float": "float32", "double": "float64"}.get(port.type[7:-1], port.type[7:-1])
    shape = tuple(side if isinstance(side, int) and side > 0 else None for side in port.shape)
    return Port(port.name, (port.name,), shape, kind)


def _parameters(model: openvino.Model) -> int:
    """Count the numbers in weights: constants of floats that are more than single ones."""
    count = 0
    for node in model.get_ops():
        if node.get_type_name() == "Constant" and node.output(0).get_element_type().is_real():
            size = int(np.prod(node.output(0).get_shape()))
            count += size if size > 1 else 0
    return count


def _cannot_run(path: Path, title: str, arrays: list[NDArray[Any]], error: Exception) -> AanetError:
    if isinstance(error, MemoryError):
        raise error
    sizes = ", ".join("×".join(map(str, each.shape)) for each in arrays)
    return ReadError(f"{title} cannot run {path} on inputs of {sizes}: {_reason(error)}.")


def _reason(error: Exception) -> str:
    """Return the last telling line of a runtime's message, in one short line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("Exception from", "Check '", "FrontEnd API"))]
    text = (telling or lines or [type(error).__name__])[0]
    return "".join(letter if letter.isprintable() else " " for letter in text).rstrip(". ")[:200]
