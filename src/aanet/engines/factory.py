"""From what a user asks for to the engine that runs it; torch is loaded only where it is needed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from aanet.engines.bf16_support import bf16_support
from aanet.engines.exported import open_exported
from aanet.engines.table import ENGINES, Options, exported_suffixes, network_engines, require_engine
from aanet.errors import AanetError, InputError, UnsupportedError, did_you_mean
from aanet.inference.spec import Engine, EngineUnavailableError, Precision
from aanet.models.weights import files

if TYPE_CHECKING:
    from aanet.models.network import StereoNetwork

    Model = str | os.PathLike[str] | StereoNetwork

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
) -> Engine:
    """Return what computes the disparities; the arguments are those of `StereoMatcher`."""
    card = None if engine is None else require_engine(engine)
    if precision not in PRECISIONS:
        raise AanetError(f"The precision must be {' or '.join(PRECISIONS)}; got {precision!r}.")
    options = Options(cast(Precision, precision), max_disparity, device, threads)
    if isinstance(model, str | os.PathLike) and Path(model).suffix in exported_suffixes():
        return _open_file(Path(model), weights, engine, options)
    if card is not None and card.from_network is None:
        raise AanetError(
            f"The engine {engine} runs {' and '.join(card.reads)} files; write one with `aanet export`."
        )
    if model == "sgbm":
        from aanet.engines.sgbm import SgbmEngine

        if weights is not None or engine is not None or device not in (None, "cpu") or precision == "bf16":
            raise UnsupportedError(
                "sgbm is OpenCV's own: weights, engine, device and precision do not apply; leave them out."
            )
        return SgbmEngine(192 if max_disparity is None else max_disparity)
    candidates = [engine] if engine is not None else fitting_engines(device)
    from_file = weights != "random" and (model is None or isinstance(model, str | os.PathLike))
    _ask_about_bf16(candidates[0], precision, device, from_file)
    opened = _open_first(candidates, find_source(model, weights, max_disparity, other_models()), options)
    name = opened.spec.name
    if weights not in (None, "random") and model not in (None, name):
        raise AanetError(f"{weights} holds the network {name}, not {model}; the file says what it is.")
    return opened


def _open_file(
    path: Path, weights: str | os.PathLike[str] | None, engine: str | None, options: Options
) -> Engine:
    """Open a file of `aanet export`."""
    runner = exported_suffixes()[path.suffix]
    card = require_engine(runner)
    if options.precision == "bf16" and card.reads[path.suffix].bf16 and card.bf16 is not None:
        bf16_support(card.bf16)  # before it is loaded
    if weights is not None or engine not in (None, runner) or options.device not in (None, "cpu"):
        raise AanetError(f"{path} holds its weights and runs on {runner} on the cpu; leave the rest out.")
    exported = open_exported(path, options)
    if options.max_disparity not in (None, exported.spec.max_disparity):
        raise AanetError(
            f"{path} searches {exported.spec.max_disparity} pixels, not {options.max_disparity}."
        )
    return exported


def _ask_about_bf16(engine: str, precision: str, device: str | None, from_file: bool) -> None:
    """Where bf16 may be used, learn of broken AMX while it can be switched off: before the library loads."""
    card = ENGINES[engine]
    may_be_used = precision == "bf16" or (precision == "auto" and from_file and card.auto_bf16)
    if may_be_used and card.bf16 is not None and device in (None, "cpu"):
        bf16_support(card.bf16)


def other_models() -> str:
    """What a matcher takes besides networks with bundled weights, in words."""
    return f"a weight file, an exported file ({', '.join(exported_suffixes())}) or sgbm"


def find_source(
    model: Model | None,
    weights: str | os.PathLike[str] | None,
    max_disparity: int | None,
    others: str = "a weight file",
) -> Path | StereoNetwork:
    """Return the weight file or the network that is meant.

    The arguments are those of `StereoMatcher`, and in words what the caller takes besides networks with
    bundled weights, for the message about a model that cannot be found.
    """
    if model is not None and not isinstance(model, str | os.PathLike):
        if max_disparity not in (None, model.max_disparity):
            raise AanetError(f"The network searches {model.max_disparity} pixels, not {max_disparity}.")
        return model
    name = "aanet" if model is None else str(model)
    if weights == "random":
        from aanet.models import zoo

        return zoo.build(name, 192 if max_disparity is None else max_disparity, seed=0).eval()
    if weights is not None:
        return files.find(weights)
    if Path(name).suffix or Path(name).name != name:
        return files.find(name)
    bundled = files.bundled_file(name)
    if not bundled.is_file():
        raise InputError(_not_bundled(name, others))
    return bundled


def _not_bundled(name: str, others: str) -> str:
    from aanet.models import zoo

    network = zoo.NETWORKS.get(name.split(":")[0])
    if network is not None:
        return f"No trained weights of {network.title} ({name}) are bundled with this version; use {others}."
    bundled = files.bundled_names()
    return (
        f"There is no model {name!r}{did_you_mean(name, zoo.NETWORKS)}; use one with bundled weights "
        f"({', '.join(bundled)}), or {others}."
    )


def _open_first(candidates: list[str], source: Path | StereoNetwork, options: Options) -> Engine:
    """Open the first engine that can run the network; the next ones are its fallbacks."""
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
    """The engines that can be used here, the fastest first; where there is a GPU, those that run on it."""
    installed = [name for name in network_engines() if ENGINES[name].installed]
    if device not in (None, "cpu") or (device is None and _has_gpu()):
        return [name for name in installed if ENGINES[name].any_device]
    return installed


def _has_gpu() -> bool:
    if not shutil.which("nvidia-smi"):  # without a driver there is no need to load torch
        return False
    import torch

    return torch.cuda.is_available()
