"""The properties of a network, and the protocol of the engines that run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from aanet.errors import ReadError, UnsupportedError
from aanet.inference.hints import InferenceHints
from aanet.inference.size_rule import SizeRule
from aanet.typing import FloatMap

MAX_DISPARITY = 4096  # the largest search range in pixels
Precision = Literal["auto", "float32", "bf16"]
Maps = tuple[FloatMap, FloatMap]


def require_maps(maps: Sequence[FloatMap], images: FloatMap, name: str) -> Maps:
    """Return disparity and confidence, or raise an error if an exported network computes anything else."""
    batch, _, height, width = images.shape
    if [each.shape for each in maps] != [(batch, height, width)] * 2:
        raise ReadError(f"The network {name} does not compute a disparity and a confidence for every pixel.")
    return maps[0], maps[1]


@dataclass(frozen=True)
class NetworkSpec:
    """What a matcher must know about a network; stored with converted and exported networks.

    Attributes:
        name: The network's name in the zoo, or that of a classical matcher.
        max_disparity: Disparities from 0 to below this number of pixels are searched.
        bytes_per_pixel: Peak memory of a prediction with 192 disparities; see `Card`.
        correlates: Whether it also needs memory for the correlation of whole rows.
        candidate_step: Pixels between two candidates of the finest cost volume.
        sizes: The image sizes that it takes.
        hints: What its weights recommend for inference.
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
        """Undo `dataclasses.asdict`."""
        nested = {"sizes": SizeRule(**values["sizes"]), "hints": InferenceHints(**values["hints"])}
        return cls(**{**values, **nested})


class Engine(Protocol):
    """Computes disparity and confidence of batches of pairs, whose size the network must take."""

    name: str  # as in `aanet.engines.table.ENGINES`
    description: str  # for people, with precision and device
    spec: NetworkSpec

    def __call__(self, left: FloatMap, right: FloatMap) -> Maps:
        """Match RGB images in 0 … 1, [B, 3, H, W] each, to disparity and confidence, [B, H, W] each."""

    def available_memory(self) -> int:
        """Bytes of memory that a prediction may use."""


class EngineUnavailableError(UnsupportedError):
    """The engine cannot run this network on this machine; another engine can."""
