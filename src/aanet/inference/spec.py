"""The small protocol between a matcher and whatever computes a disparity."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from aanet.errors import UnsupportedError
from aanet.inference.postprocess import Handling
from aanet.typing import FloatMap

Precision = Literal["auto", "float32", "bf16"]
Maps = tuple[FloatMap, FloatMap]


@dataclass(frozen=True)
class NetworkFacts:
    """What a matcher must know of a network to feed it and to read its answer.

    Attributes:
        name: The network's name in the zoo, or "sgbm".
        max_disparity: Disparities from 0 to below so many pixels are searched.
        candidate_step: Pixels between two candidates of the finest matching volume.
        size_multiple: What height and width must be multiples of.
        minimum_size: What height and width must at least be.
        handling: What the weights ask of a matcher.
    """

    name: str
    max_disparity: int
    candidate_step: int = 1
    size_multiple: int = 1
    minimum_size: int = 1
    handling: Handling = field(default_factory=Handling)


class Engine(Protocol):
    """Turns batches of pairs that fit the network into disparity and confidence."""

    name: str  # what a user asks for it by
    description: str  # with precision and device, for people
    facts: NetworkFacts

    def __call__(self, left: FloatMap, right: FloatMap) -> Maps:
        """Match RGB images in 0 … 1, [B, 3, H, W] each, to disparity and confidence, [B, H, W] each."""

    def available_memory(self) -> int:
        """Bytes that a prediction may use."""


class EngineUnavailableError(UnsupportedError):
    """An engine cannot run this network here; another one can."""
