"""An engine that computes nothing, for tests of what happens around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aanet.inference.spec import NetworkSpec
from aanet.matcher import StereoMatcher

Array = NDArray[np.float32]


class FakeEngine:
    """Predicts a given disparity, with the left image's first channel as confidence, and records the shapes.

    Args:
        disparity: Of every pixel, as a map [H, W], or computed from the left images [B, 3, H, W].
        memory: The bytes that it says are available.
        spec: Fields of its `NetworkSpec` that differ from those of an AANet with 48 disparities.
    """

    name = description = "fake"

    def __init__(
        self,
        disparity: float | Array | Callable[[Array], Array] = 5.0,
        memory: int = 10**12,
        **spec: Any,
    ) -> None:
        aanet = {"name": "aanet", "max_disparity": 48, "bytes_per_pixel": 800, "correlates": True}
        self.spec = NetworkSpec(**{**aanet, **spec})
        self.disparity, self.memory = disparity, memory
        self.shapes: list[tuple[int, ...]] = []

    def __call__(self, left: Array, right: Array) -> tuple[Array, Array]:
        assert left.shape == right.shape
        self.shapes.append(left.shape)
        disparity = self.disparity(left) if callable(self.disparity) else np.float32(self.disparity)
        return np.broadcast_to(disparity, left[:, 0].shape).copy(), left[:, 0].copy()

    def available_memory(self) -> int:
        return self.memory

    @property
    def matcher(self) -> StereoMatcher:
        """A matcher that uses it."""
        return StereoMatcher.with_engine(self)
