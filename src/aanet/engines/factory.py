"""From what a user asks for to the engine that runs it; torch is loaded only where it is needed."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from aanet.engines.bf16_support import bf16_support
from aanet.errors import AanetError, UnsupportedError
from aanet.inference.spec import Engine, EngineUnavailableError, Precision
from aanet.models.weights import files

if TYPE_CHECKING:
    from aanet.models.network import StereoNetwork

    Model = str | os.PathLike[str] | StereoNetwork

ENGINES = ("openvino", "torch")
PRECISIONS = get_args(Precision)
# What runs the files that `aanet export` writes.
EXPORTED = {".onnx": "onnxruntime", ".xml": "openvino", ".pt2": "torch"}


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
    _check_choice("engine", engine, (*ENGINES, "onnxruntime", None))
    _check_choice("precision", precision, PRECISIONS)
    if isinstance(model, str | os.PathLike) and Path(model).suffix in EXPORTED:
        from aanet.engines.exported import open_exported

        path, runner = Path(model), EXPORTED[Path(model).suffix]
        if precision == "bf16" and runner == "openvino":
            bf16_support("openvino")  # before it is loaded
        if weights is not None or engine not in (None, runner) or device not in (None, "cpu"):
            raise AanetError(f"{path} holds its weights and runs on {runner} on the cpu; leave the rest out.")
        exported = open_exported(path, cast(Precision, precision), threads)
        if max_disparity not in (None, exported.facts.max_disparity):
            raise AanetError(f"{path} searches {exported.facts.max_disparity} pixels, not {max_disparity}.")
        return exported
    if engine == "onnxruntime":
        raise AanetError("The engine onnxruntime runs .onnx files; write one with `aanet export`.")
    if model == "sgbm":
        from aanet.engines.sgbm import SgbmEngine

        if weights is not None or engine is not None or device not in (None, "cpu") or precision == "bf16":
            raise UnsupportedError(
                "sgbm is OpenCV's own: weights, engine, device and precision do not apply; leave them out."
            )
        return SgbmEngine(max_disparity or 192)
    from_file = weights != "random" and (model is None or isinstance(model, str | os.PathLike))
    _ask_about_bf16(engine or default_engine(device), precision, device, from_file)
    source = find_source(model, weights, max_disparity)
    opened = _open(source, engine, cast(Precision, precision), max_disparity, device, threads)
    name = opened.facts.name
    if weights not in (None, "random") and model not in (None, name):
        raise AanetError(f"{weights} holds the network {name}, not {model}; the file says what it is.")
    return opened


def _ask_about_bf16(library: str, precision: str, device: str | None, from_file: bool) -> None:
    """Where bf16 may be used, learn of broken AMX while it can be switched off: before the library loads."""
    may_be_used = precision == "bf16" or (precision == "auto" and from_file and library == "openvino")
    if may_be_used and device in (None, "cpu"):
        bf16_support("openvino" if library == "openvino" else "torch")


def find_source(
    model: Model | None, weights: str | os.PathLike[str] | None, max_disparity: int | None
) -> Path | StereoNetwork:
    """Return the file or the network that is meant; the arguments are those of `StereoMatcher`."""
    if model is not None and not isinstance(model, str | os.PathLike):
        if max_disparity not in (None, model.max_disparity):
            raise AanetError(f"The network searches {model.max_disparity} pixels, not {max_disparity}.")
        return model
    name = "aanet" if model is None else str(model)
    if weights == "random":
        from aanet.engines.networks import random_network

        return random_network(name, max_disparity)
    if weights is not None:
        return files.find(weights)
    if Path(name).suffix or Path(name).name != name:
        return files.find(name)
    bundled = files.bundled_file(name)
    if not bundled.is_file():
        from aanet.models import zoo

        title = zoo.card(name.split(":")[0]).title
        raise AanetError(
            f"No trained weights of {title} ({name}) come with this version, and without them a network "
            "predicts noise; give a file (--weights FILE), or use --model sgbm, which needs none."
        )
    return bundled


def _open(
    source: Path | StereoNetwork,
    engine: str | None,
    precision: Precision,
    max_disparity: int | None,
    device: str | None,
    threads: int | None,
) -> Engine:
    if engine == "openvino" and device not in (None, "cpu"):
        raise UnsupportedError(f"The engine openvino runs on the cpu; for the device {device} use torch.")
    unavailable = ""
    if (engine or default_engine(device)) == "openvino":
        from aanet.engines.openvino.engine import OpenVINOEngine

        try:
            if isinstance(source, Path):
                return OpenVINOEngine.from_weights(source, max_disparity, precision, threads)
            return OpenVINOEngine.from_network(source, precision, threads)
        except EngineUnavailableError as error:
            if engine is not None:
                raise
            unavailable = f" ({str(error).split(';')[0]})"
    from aanet.engines.networks import load_network
    from aanet.engines.torch import TorchEngine

    network = load_network(source, max_disparity) if isinstance(source, Path) else source
    opened = TorchEngine(network, device, precision, threads)
    opened.description += unavailable
    return opened


def default_engine(device: str | None = None) -> str:
    """Return the fastest engine here: OpenVINO, unless a GPU is asked for or present."""
    if device not in (None, "cpu") or importlib.util.find_spec("openvino") is None:
        return "torch"
    if device is None and shutil.which("nvidia-smi"):  # without a driver there is no need to load torch
        import torch

        return "torch" if torch.cuda.is_available() else "openvino"
    return "openvino"


def _check_choice(what: str, value: str | None, allowed: tuple[str | None, ...]) -> None:
    if value not in allowed:
        choices = " or ".join(choice for choice in allowed if choice is not None)
        raise AanetError(f"The {what} must be {choices}; got {value!r}.")
