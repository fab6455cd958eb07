"""Engines for files written by `aanet export`, whose metadata contains everything that a matcher needs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from aanet.engines.table import ENGINES, Options, exported_suffixes
from aanet.errors import ReadError, UnsupportedError
from aanet.inference.padding import Padding
from aanet.inference.spec import Engine, Maps
from aanet.typing import FloatMap


def open_exported(path: Path, options: Options | None = None) -> Engine:
    """Open an exported file with the engine that reads its suffix.

    Args:
        path: The file.
        options: Precision and threads; bf16 is refused for formats that only run in float32.
    """
    options = options or Options()
    if not path.is_file():
        raise ReadError(f"There is no file {path}.")
    reader = ENGINES[exported_suffixes()[path.suffix]].reads[path.suffix]
    if options.precision == "bf16" and not reader.bf16:
        others = [suffix for card in ENGINES.values() for suffix, other in card.reads.items() if other.bf16]
        raise UnsupportedError(
            f"{path} only runs in float32; bf16 needs a file of type {' or '.join(others)}."
        )
    engine, exported = reader.open(path, options)
    return engine if exported.size is None else FixedSizeEngine(engine, exported.size)


class FixedSizeEngine:
    """Wraps an engine that takes a single pair of one size: pads smaller images and loops over the batch."""

    def __init__(self, engine: Engine, size: tuple[int, int]) -> None:
        self.name, self.description, self.spec = engine.name, engine.description, engine.spec
        self._engine, self._size = engine, size

    def __call__(self, left: FloatMap, right: FloatMap) -> Maps:
        """See `Engine`."""
        height, width = left.shape[2:]
        rows, columns = self._size[0] - height, self._size[1] - width
        if rows < 0 or columns < 0:
            raise UnsupportedError(
                f"The model was exported for images of {self._size[0]}×{self._size[1]} (height × width), but "
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
