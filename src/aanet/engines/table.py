"""The table of all engines: how each is opened, the package it needs and the files it reads.

Everything that lists, checks or opens engines uses `ENGINES`. Libraries are imported only when an engine is
opened, so that help texts can list the engines without delay.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aanet.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from aanet.engines.bf16_support import Library
    from aanet.inference.description import Description
    from aanet.inference.spec import Engine, Precision
    from aanet.models.network import StereoNetwork


class Options(NamedTuple):
    """The user's options for an engine; see `StereoMatcher`."""

    precision: Precision = "auto"
    max_disparity: int | None = None
    device: str | None = None
    threads: int | None = None


class FileReader(NamedTuple):
    """How an engine opens one kind of exported file."""

    open: Callable[[Path, Options], tuple[Engine, Description]]
    bf16: bool = False  # whether such a file can run in bf16


@dataclass(frozen=True, kw_only=True)
class EngineCard:
    """The properties of an engine.

    Attributes:
        package: The Python package that it needs.
        extra: The extra of aanet that installs the package; empty if the package is always installed.
        from_weights: Opens a weights file; None for an engine that only runs exported files.
        from_network: Opens a network in memory; None for an engine that only runs exported files.
        reads: Readers of exported files by suffix.
        bf16: The library whose bf16 support decides whether bf16 works; None if the engine has no bf16.
        auto_bf16: Whether the precision "auto" may select bf16.
        any_device: Whether it runs on devices other than the CPU.
    """

    package: str
    extra: str = ""
    from_weights: Callable[[Path, Options], Engine] | None = None
    from_network: Callable[[StereoNetwork, Options], Engine] | None = None
    reads: Mapping[str, FileReader] = field(default_factory=dict)
    bf16: Library | None = None
    auto_bf16: bool = False
    any_device: bool = False

    @property
    def installed(self) -> bool:
        """Whether its package is installed."""
        return importlib.util.find_spec(self.package) is not None


def _openvino_weights(path: Path, options: Options) -> Engine:
    from aanet.engines.openvino.engine import OpenVINOEngine

    return OpenVINOEngine.from_weights(path, options.max_disparity, options.precision, options.threads)


def _openvino_network(network: StereoNetwork, options: Options) -> Engine:
    from aanet.engines.openvino.engine import OpenVINOEngine

    return OpenVINOEngine.from_network(network, options.precision, options.threads)


def _openvino_file(path: Path, options: Options) -> tuple[Engine, Description]:
    from aanet.engines.openvino.engine import OpenVINOEngine

    return OpenVINOEngine.from_exported(path, options.precision, options.threads)


def _torch_weights(path: Path, options: Options) -> Engine:
    from aanet.engines.torch import TorchEngine
    from aanet.models.weights import checkpoint

    stored = checkpoint.read(path)
    network = stored.network(training_heads=False, max_disparity=options.max_disparity)
    return TorchEngine(network, options.device, options.precision, options.threads, stored.hints)


def _torch_network(network: StereoNetwork, options: Options) -> Engine:
    from aanet.engines.torch import TorchEngine

    return TorchEngine(network, options.device, options.precision, options.threads)


def _onnx_file(path: Path, options: Options) -> tuple[Engine, Description]:
    from aanet.engines.onnxruntime import OnnxRuntimeEngine

    engine = OnnxRuntimeEngine(path, options.threads)
    return engine, engine.exported


# Fastest on a CPU first: by default, the first installed engine that can run a network is used.
ENGINES: dict[str, EngineCard] = {
    "openvino": EngineCard(
        package="openvino",
        from_weights=_openvino_weights,
        from_network=_openvino_network,
        reads={".xml": FileReader(_openvino_file, bf16=True)},
        bf16="openvino",
        auto_bf16=True,
    ),
    "torch": EngineCard(
        package="torch",
        from_weights=_torch_weights,
        from_network=_torch_network,
        bf16="torch",
        any_device=True,
    ),
    "onnxruntime": EngineCard(package="onnxruntime", extra="export", reads={".onnx": FileReader(_onnx_file)}),
}


def network_engines() -> list[str]:
    """Return the engines that run networks and weights files, not only exported files."""
    return [name for name, card in ENGINES.items() if card.from_network is not None]


def exported_suffixes() -> dict[str, str]:
    """Return the suffixes of exported files with the engine that runs each."""
    return {suffix: name for name, card in ENGINES.items() for suffix in card.reads}


def require_engine(name: str) -> EngineCard:
    """Return an engine's card, or raise an error that names the package to install."""
    if name not in ENGINES:
        raise InputError(f"The engine must be {' or '.join(ENGINES)}; got {name!r}.")
    card = ENGINES[name]
    if not card.installed:
        target = f"'aanet[{card.extra}]'" if card.extra else card.package
        raise MissingExtraError(
            f"The engine {name} needs the package {card.package}, which is not installed; install it with "
            f"`pip install {target}`."
        )
    return card
