"""Opening the engine for a model, weights and options; torch is imported only if it is needed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from aanet.engines.bf16_support import bf16_support
from aanet.engines.classical import CLASSICAL, ClassicalEngine
from aanet.engines.exported import open_exported
from aanet.engines.foreign import files as foreign_files
from aanet.engines.table import ENGINES, Options, exported_suffixes, network_engines, require_engine
from aanet.errors import AanetError, InputError, UnsupportedError, did_you_mean
from aanet.inference.spec import Engine, EngineUnavailableError, Precision
from aanet.models.weights import files

if TYPE_CHECKING:
    from aanet.engines.foreign.spec import ForeignSpec
    from aanet.models.network import StereoNetwork

    Model = str | os.PathLike[str] | StereoNetwork
    NetworkSpecSource = str | os.PathLike[str] | ForeignSpec

PRECISIONS = get_args(Precision)


def open_engine(
    model: Model | None = None,
    *,
    weights: str | os.PathLike[str] | None = None,
    engine: str | None = None,
    precision: str = "auto",
    max_disparity: int | None = None,
    device: str | None = None,
    threads: int | None = None,
    network_spec: NetworkSpecSource | None = None,
) -> Engine:
    """Open the engine that computes the disparities; the arguments are those of `StereoMatcher`."""
    card = None if engine is None else require_engine(engine)
    if precision not in PRECISIONS:
        raise InputError(f"The precision must be {' or '.join(PRECISIONS)}; got {precision!r}.")
    options = Options(cast(Precision, precision), max_disparity, device, threads)
    if isinstance(model, str | os.PathLike) and Path(model).suffix.lower() == ".pt2":
        raise UnsupportedError(
            f"{model} is not opened, because torch.export.load can execute code in it; use a weight file, or "
            f"export to {' or '.join(exported_suffixes())}."
        )
    if isinstance(model, str | os.PathLike) and foreign_files.is_foreign(Path(model)):
        return _open_foreign(Path(model), weights, engine, options, network_spec)
    if network_spec is not None:
        raise UnsupportedError(
            "A network spec describes a file that `aanet export` did not write "
            f"({', '.join(foreign_files.SUFFIXES)}); leave it out for this model."
        )
    if isinstance(model, str | os.PathLike) and Path(model).suffix in exported_suffixes():
        return _open_file(Path(model), weights, engine, options)
    if card is not None and card.from_network is None:
        raise UnsupportedError(
            f"The engine {engine} only runs {' and '.join(card.reads)} files; write one with `aanet export`."
        )
    if isinstance(model, str) and model in CLASSICAL:
        if weights is not None or engine is not None or device not in (None, "cpu") or precision == "bf16":
            raise UnsupportedError(
                f"{model} runs in OpenCV, so that weights, engine, device and precision do not apply; "
                "leave them out."
            )
        return ClassicalEngine(model, max_disparity)
    candidates = [engine] if engine is not None else fitting_engines(device)
    from_file = weights != "random" and (model is None or isinstance(model, str | os.PathLike))
    _probe_bf16(candidates[0], precision, device, from_file)
    opened = _open_first(candidates, find_source(model, weights, max_disparity, other_models()), options)
    name = opened.spec.name
    if weights not in (None, "random") and model not in (None, name):
        raise UnsupportedError(f"{weights} contains weights of {name}, not of {model}; leave the model out.")
    return opened


def _open_file(
    path: Path, weights: str | os.PathLike[str] | None, engine: str | None, options: Options
) -> Engine:
    """Open a file of `aanet export`."""
    runner = exported_suffixes()[path.suffix]
    card = require_engine(runner)
    if options.precision == "bf16" and card.reads[path.suffix].bf16 and card.bf16 is not None:
        bf16_support(card.bf16)  # before the library is imported
    if weights is not None or engine not in (None, runner) or options.device not in (None, "cpu"):
        raise UnsupportedError(
            f"{path} contains its weights and runs on {runner} on the cpu; leave out weights, engine and "
            "device."
        )
    exported = open_exported(path, options)
    if options.max_disparity not in (None, exported.spec.max_disparity):
        raise UnsupportedError(
            f"{path} has a maximum disparity of {exported.spec.max_disparity}, not {options.max_disparity}."
        )
    return exported


def _open_foreign(
    path: Path,
    weights: str | os.PathLike[str] | None,
    engine: str | None,
    options: Options,
    network_spec: NetworkSpecSource | None,
) -> Engine:
    """Open a network that this package did not export."""
    if weights is not None or options.device not in (None, "cpu"):
        raise UnsupportedError(f"{path} contains its weights and runs on the cpu; leave out both.")
    if options.precision == "bf16":
        bf16_support("openvino")  # before the library is imported
    from aanet.engines.foreign.opening import open_foreign

    return open_foreign(path, network_spec, options, engine)


def _probe_bf16(engine: str, precision: str, device: str | None, from_file: bool) -> None:
    """If bf16 may be used, probe it before the library is imported, while broken AMX can be disabled."""
    card = ENGINES[engine]
    may_be_used = precision == "bf16" or (precision == "auto" and from_file and card.auto_bf16)
    if may_be_used and card.bf16 is not None and device in (None, "cpu"):
        bf16_support(card.bf16)


def other_models() -> str:
    """What a matcher accepts besides networks with bundled weights, for error messages."""
    suffixes = dict.fromkeys([*exported_suffixes(), *foreign_files.SUFFIXES])
    return f"a weight file, a network file ({', '.join(suffixes)}), {' or '.join(CLASSICAL)}"


def find_source(
    model: Model | None,
    weights: str | os.PathLike[str] | None,
    max_disparity: int | None,
    others: str = "a weight file",
) -> Path | StereoNetwork:
    """Return the weights file or the network to run.

    Args:
        model: As in `StereoMatcher`.
        weights: As in `StereoMatcher`.
        max_disparity: As in `StereoMatcher`.
        others: What the caller accepts besides networks with bundled weights, for error messages.
    """
    if model is not None and not isinstance(model, str | os.PathLike):
        if max_disparity not in (None, model.max_disparity):
            raise UnsupportedError(
                f"The network has a maximum disparity of {model.max_disparity}, not {max_disparity}."
            )
        return model
    name = files.DEFAULT if model is None else str(model)
    if weights == "random":
        from aanet.models import zoo

        return zoo.build(name, 192 if max_disparity is None else max_disparity, seed=0).eval()
    if weights is not None:
        return files.find(weights)
    if Path(name).suffix or Path(name).name != name:
        return files.find(name)
    bundled = files.bundled_file(name)
    if not bundled.is_file():
        raise _not_bundled(name, others)
    return bundled


def _not_bundled(name: str, others: str) -> AanetError:
    from aanet.models import zoo

    network = zoo.NETWORKS.get(name.split(":")[0])
    if network is not None:
        return UnsupportedError(
            f"This version has no bundled weights for {network.title} ({name}); use {others}."
        )
    return InputError(
        f"There is no model {name!r}{did_you_mean(name, zoo.NETWORKS)}; use one with bundled weights "
        f"({', '.join(files.bundled_names())}), or {others}."
    )


def _open_first(candidates: list[str], source: Path | StereoNetwork, options: Options) -> Engine:
    """Open the first engine that can run the network; the others are fallbacks."""
    reason = ""
    for name in candidates:
        card = require_engine(name)
        if options.device not in (None, "cpu") and not card.any_device:
            others = " or ".join(other for other in network_engines() if ENGINES[other].any_device)
            raise UnsupportedError(
                f"The engine {name} runs on the cpu; for the device {options.device} use {others}."
            )
        assert card.from_weights is not None
        assert card.from_network is not None
        try:
            if isinstance(source, Path):
                opened = card.from_weights(source, options)
            else:
                opened = card.from_network(source, options)
        except EngineUnavailableError as error:
            if name == candidates[-1]:
                raise
            reason = f" ({str(error).split(';')[0]})"
            continue
        opened.description += reason
        return opened
    raise AssertionError("there is always an engine to try")


def fitting_engines(device: str | None = None) -> list[str]:
    """Return the installed engines, fastest first; with a GPU, only those that run on it."""
    installed = [name for name in network_engines() if ENGINES[name].installed]
    if device not in (None, "cpu") or (device is None and _has_gpu()):
        return [name for name in installed if ENGINES[name].any_device]
    return installed


def _has_gpu() -> bool:
    if not shutil.which("nvidia-smi"):  # avoids importing torch on machines without a driver
        return False
    import torch

    return torch.cuda.is_available()
