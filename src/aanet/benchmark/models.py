"""The models that can be benchmarked: networks with random weights, weight files, and SGBM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aanet.errors import InputError, did_you_mean
from aanet.evaluation.naming import is_file_name, name_models
from aanet.inference.size_rule import SizeRule
from aanet.models import zoo
from aanet.models.complexity import Complexity, complexity, size_rule
from aanet.models.weights import checkpoint, files

SGBM = "sgbm"


@dataclass(frozen=True)
class BenchmarkModel:
    """A model to measure.

    Attributes:
        name: What tables call it.
        source: The network, the weight file or name of bundled weights, or "sgbm".
        network: Name of the network, or "sgbm".
        max_disparity: Pixels that it searches.
    """

    name: str
    source: str
    network: str
    max_disparity: int = 192

    @property
    def is_network(self) -> bool:
        """Whether it is a network; SGBM has no engine to choose, no weights and no parameters."""
        return self.network != SGBM

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `open_engine` that open it, apart from the engine."""
        weights = "random" if self.source in zoo.NETWORKS else None
        return {"model": self.source, "weights": weights, "max_disparity": self.max_disparity}

    @property
    def sizes(self) -> SizeRule:
        """The image sizes that it takes."""
        return size_rule(self.network) if self.is_network else SizeRule()

    def cost(self, size: tuple[int, int]) -> Complexity | None:
        """Parameters and multiply-accumulates for one pair of this size; None for SGBM."""
        return complexity(self.network, size, self.max_disparity) if self.is_network else None


def find_models(models: Sequence[str]) -> list[BenchmarkModel]:
    """Return the models that a user names: networks, weight files, "sgbm", or NAME=MODEL."""
    return [_find(name, source) for name, source in name_models(models).items()]


def _find(name: str, source: str) -> BenchmarkModel:
    if source == SGBM or source in zoo.NETWORKS:
        return BenchmarkModel(name, source, source)
    if not is_file_name(source) and not files.bundled_file(source).is_file():
        raise InputError(
            f"There is no network {source!r}{did_you_mean(source, [*zoo.NETWORKS, SGBM])}; give one of "
            f"{', '.join(zoo.NETWORKS)}, a weight file, or {SGBM}."
        )
    architecture = checkpoint.read(source).architecture
    return BenchmarkModel(name, source, architecture.builder, architecture.max_disparity)
