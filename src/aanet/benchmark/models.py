"""The models that can be benchmarked: networks with random weights, files, and classical matchers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aanet.engines.classical import CLASSICAL, ClassicalEngine
from aanet.engines.factory import open_engine
from aanet.engines.foreign.files import is_foreign
from aanet.engines.table import exported_suffixes
from aanet.errors import InputError, did_you_mean
from aanet.evaluation.naming import is_file_name, name_models
from aanet.inference.size_rule import SizeRule
from aanet.models import zoo
from aanet.models.complexity import Complexity, complexity, size_rule
from aanet.models.weights import checkpoint, files

OPENCV = ClassicalEngine.name
DEFAULT_RANGE = 192  # pixels that networks with random weights search


@dataclass(frozen=True)
class BenchmarkModel:
    """A model to measure.

    Attributes:
        name: What tables call it.
        source: The network, the file or name of bundled weights, or the name of a classical matcher.
        network: Name of the network or classical matcher.
        max_disparity: Pixels that it searches; None if its file fixes them.
        own_engine: The only engine that runs it; None for networks, which have a choice.
        own_sizes: The image sizes that a file takes.
        network_spec: How to feed a file of another program.
    """

    name: str
    source: str
    network: str
    max_disparity: int | None = DEFAULT_RANGE
    own_engine: str | None = None
    own_sizes: SizeRule = field(default_factory=SizeRule)
    network_spec: str | None = None

    @property
    def is_network(self) -> bool:
        """Whether it is a network of the zoo, with a choice of engines and known parameters."""
        return self.own_engine is None

    @property
    def has_random_weights(self) -> bool:
        """Whether it is named as a network, without weights."""
        return self.source in zoo.NETWORKS

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `open_engine` that open it, apart from the engine."""
        return {
            "model": self.source,
            "weights": "random" if self.has_random_weights else None,
            "max_disparity": self.max_disparity,
            "network_spec": self.network_spec,
        }

    @property
    def sizes(self) -> SizeRule:
        """The image sizes that it takes."""
        return size_rule(self.network) if self.is_network else self.own_sizes

    def cost(self, size: tuple[int, int]) -> Complexity | None:
        """Parameters and multiply-accumulates for a pair of this size; only networks of the zoo have them."""
        if not self.is_network or self.max_disparity is None:
            return None
        return complexity(self.network, size, self.max_disparity)


def find_models(
    models: Sequence[str], max_disparity: int | None = None, network_spec: str | None = None
) -> list[BenchmarkModel]:
    """Return the models that a user names.

    Args:
        models: Networks, weight files, network files, classical matchers, or NAME=MODEL.
        max_disparity: Pixels to search, where the model leaves a choice.
        network_spec: How to feed the files of other programs.
    """
    return [_find(name, source, max_disparity, network_spec) for name, source in name_models(models).items()]


def _find(name: str, source: str, max_disparity: int | None, network_spec: str | None) -> BenchmarkModel:
    if source in CLASSICAL or source in zoo.NETWORKS:
        own = OPENCV if source in CLASSICAL else None
        return BenchmarkModel(name, source, source, max_disparity or DEFAULT_RANGE, own)
    if is_foreign(Path(source)) or Path(source).suffix in exported_suffixes():
        spec = network_spec if is_foreign(Path(source)) else None
        opened = open_engine(source, network_spec=spec)
        return BenchmarkModel(name, source, opened.spec.name, None, opened.name, opened.spec.sizes, spec)
    if not is_file_name(source) and not files.bundled_file(source).is_file():
        raise InputError(
            f"There is no network {source!r}{did_you_mean(source, [*zoo.NETWORKS, *CLASSICAL])}; give one of "
            f"{', '.join(zoo.NETWORKS)}, a weight file, a network file, {' or '.join(CLASSICAL)}."
        )
    architecture = checkpoint.read(source).architecture
    return BenchmarkModel(name, source, architecture.builder, max_disparity or architecture.max_disparity)
