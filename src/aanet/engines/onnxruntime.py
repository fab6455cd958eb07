"""ONNX Runtime, for `.onnx` files written by `aanet export`; needs neither torch nor onnx."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from aanet.engines.openvino.engine import threads_from_environment
from aanet.errors import AanetError, MissingExtraError, ReadError, UnsupportedError
from aanet.inference import memory
from aanet.inference.description import Description, parse
from aanet.inference.spec import Maps, require_maps
from aanet.typing import FloatMap

# ONNX Runtime reads this when it is imported; without it, it stores a device identifier and sends events.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
try:
    import onnxruntime
except ImportError as error:
    raise MissingExtraError(
        "An .onnx file needs ONNX Runtime, which is not installed; install it with "
        "`pip install 'aanet[export]'`."
    ) from error

runtime = onnxruntime  # imported without its telemetry, for others
ERRORS_ONLY = 3  # level of its log


class OnnxRuntimeEngine:
    """An ONNX model of any size on the CPU."""

    name = "onnxruntime"

    def __init__(self, path: Path, threads: int | None = None) -> None:
        self._path = path
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or threads_from_environment() or 0
        options.log_severity_level = ERRORS_ONLY
        try:
            self._session = onnxruntime.InferenceSession(
                path.read_bytes(), options, providers=["CPUExecutionProvider"]
            )
            metadata = self._session.get_modelmeta().custom_metadata_map  # decodes it
        except Exception as error:  # the runtime's errors have no common base class
            raise _refusal(path, error) from error
        self.exported: Description = parse(metadata, path)
        self.spec = self.exported.spec
        self.description = f"ONNX Runtime {onnxruntime.__version__}, float32, cpu"

    def __call__(self, left: FloatMap, right: FloatMap) -> Maps:
        """See `Engine`."""
        pair = {"left": np.ascontiguousarray(left), "right": np.ascontiguousarray(right)}
        try:
            maps = self._session.run(["disparity", "confidence"], pair)
        except Exception as error:  # the runtime's errors have no common base class
            raise _refusal(self._path, error) from error
        return require_maps(maps, left, self.spec.name)

    def available_memory(self) -> int:
        """Bytes of main memory."""
        return memory.available_memory()


def _refusal(path: Path, error: Exception) -> AanetError:
    """Return an error that tells the user what to do about a file that the runtime cannot open or run."""
    reason = " ".join(str(error).split()) or type(error).__name__
    version = onnxruntime.__version__
    if "DeformConv" in reason or "opset" in reason.lower():
        return UnsupportedError(
            f"ONNX Runtime {version} is too old for {path}, which uses DeformConv of opset 19; "
            "export it with --deform decomposed, or install a newer onnxruntime."
        )
    return ReadError(f"{path} cannot be run by ONNX Runtime {version}: {reason[:300]}")
