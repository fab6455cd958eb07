"""Engines for files written by `aanet export`: the file says all that a matcher must know."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from aanet.errors import AanetError
from aanet.inference.description import SECTION, Description, parse
from aanet.inference.padding import Padding
from aanet.inference.spec import Engine, Maps, Precision
from aanet.typing import FloatMap


def open_exported(path: Path, precision: Precision = "auto", threads: int | None = None) -> Engine:
    """Open an exported file, by its suffix.

    Args:
        path: An .onnx, .xml or .pt2 file.
        precision: "bf16" is a choice of OpenVINO's alone, the other formats fix the precision in the file;
            "auto" is float32.
        threads: How many; None follows `OMP_NUM_THREADS`, or else takes every core.
    """
    if not path.is_file():
        raise AanetError(f"There is no file {path}.")
    if precision == "bf16" and path.suffix != ".xml":
        raise AanetError(f"{path} computes in float32; bf16 can be had from OpenVINO's .xml files.")
    engine, exported = _OPENERS[path.suffix](path, precision, threads)
    return engine if exported.size is None else FixedSizeEngine(engine, exported.size)


def _open_onnx(path: Path, _precision: Precision, threads: int | None) -> tuple[Engine, Description]:
    from aanet.engines.onnxruntime import OnnxRuntimeEngine

    engine = OnnxRuntimeEngine(path, threads)
    return engine, engine.exported


def _open_openvino(path: Path, precision: Precision, threads: int | None) -> tuple[Engine, Description]:
    import openvino

    from aanet.engines.openvino.engine import OpenVINOEngine

    if not path.with_suffix(".bin").is_file():
        raise AanetError(f"{path} needs {path.with_suffix('.bin').name} beside it, which holds its weights.")
    try:
        model = openvino.Core().read_model(path)
    except RuntimeError as error:
        raise AanetError(f"{path} is not a model that OpenVINO {openvino.__version__} reads.") from error
    exported = parse(model.get_rt_info(SECTION).value if model.has_rt_info(SECTION) else {}, path)
    return OpenVINOEngine(model, exported.facts, precision, threads), exported


def _open_program(path: Path, _precision: Precision, threads: int | None) -> tuple[Engine, Description]:
    from aanet.engines.torch_export import ProgramEngine

    engine = ProgramEngine(path, threads)
    return engine, engine.exported


_OPENERS = {".onnx": _open_onnx, ".xml": _open_openvino, ".pt2": _open_program}


class FixedSizeEngine:
    """Feeds an engine that takes one image of one size: smaller ones are padded, one after the other."""

    def __init__(self, engine: Engine, size: tuple[int, int]) -> None:
        self.name, self.description, self.facts = engine.name, engine.description, engine.facts
        self._engine, self._size = engine, size

    def __call__(self, left: FloatMap, right: FloatMap) -> Maps:
        """See `Engine`."""
        height, width = left.shape[2:]
        rows, columns = self._size[0] - height, self._size[1] - width
        if rows < 0 or columns < 0:
            raise AanetError(
                f"The model was exported for images of {self._size[0]}×{self._size[1]} (height × width) and "
                f"got {height}×{width}; match at a smaller scale, or export it without --height and --width."
            )
        padding = Padding(rows // 2, rows - rows // 2, columns // 2, columns - columns // 2)
        pairs = zip(padding.pad(left), padding.pad(right), strict=True)
        maps = [self._engine(one[None], other[None]) for one, other in pairs]
        disparity, confidence = (padding.crop(np.concatenate(each)) for each in zip(*maps, strict=True))
        return disparity, confidence

    def available_memory(self) -> int:
        """Bytes that a prediction may use."""
        return self._engine.available_memory()
