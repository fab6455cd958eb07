"""What a network is and needs, and the protocol between a matcher and whatever computes a disparity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from aanet.errors import UnsupportedError
from aanet.inference.hints import InferenceHints
from aanet.inference.size_rule import SizeRule
from aanet.typing import FloatMap

Precision = Literal["auto", "float32", "bf16"]
Maps = tuple[FloatMap, FloatMap]


@dataclass(frozen=True)
class NetworkSpec:
    """What a matcher must know of a network; stored with converted and exported ones.

    Attributes:
        name: The network's name in the zoo, or "sgbm".
        max_disparity: Disparities from 0 to below so many pixels are searched.
        bytes_per_pixel: What a prediction takes at its peak with 192 disparities; see `Card`.
        correlates: Whether it needs memory for the correlation of whole rows on top of that.
        candidate_step: Pixels between two candidates of the finest cost volume.
        sizes: The image sizes that it takes.
        hints: What its weights recommend.
    """

    name: str
    max_disparity: int
    bytes_per_pixel: int
    correlates: bool
    candidate_step: int = 1
    sizes: SizeRule = field(default_factory=SizeRule)
    hints: InferenceHints = field(default_factory=InferenceHints)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> NetworkSpec:
        """Read what `dataclasses.asdict` made of a spec."""
        nested = {"sizes": SizeRule(**values["sizes"]), "hints": InferenceHints(**values["hints"])}
        return cls(**{**values, **nested})


class Engine(Protocol):
    """Turns batches of pairs that fit the network into disparity and confidence."""

    name: str  # what a user asks for it by
    description: str  # with precision and device, for people
    spec: NetworkSpec

    def __call__(self, left: FloatMap, right: FloatMap) -> Maps:
        """Match RGB images in 0 … 1, [B, 3, H, W] each, to disparity and confidence, [B, H, W] each."""

    def available_memory(self) -> int:
        """Bytes that a prediction may use."""


class EngineUnavailableError(UnsupportedError):
    """An engine cannot run this network here; another one can."""
