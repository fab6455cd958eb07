"""Network in, file out: written, opened again, held against PyTorch, and only then put in its place."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from aanet.engines.exported import open_exported
from aanet.engines.graph import spec_of
from aanet.engines.torch import TorchEngine
from aanet.errors import AanetError, MissingExtraError
from aanet.export.parity import Parity, compare
from aanet.export.recording import free_sizes, simplified
from aanet.inference.description import Description
from aanet.inference.hints import InferenceHints
from aanet.io.atomic import atomic_path
from aanet.models import zoo
from aanet.models.layers import DeformConv2d
from aanet.models.network import StereoNetwork

FORMATS = {"onnx": ".onnx", "openvino": ".xml", "torch": ".pt2"}
DEFORM = ("native", "decomposed")
_PARITY_SIZE = (192, 288)  # at least, where the file takes any


@dataclass(frozen=True)
class Report:
    """What was written, and how it compares with PyTorch."""

    path: Path
    description: Description
    parity: Parity
    engine: str


def export_network(
    network: StereoNetwork,
    path: str | os.PathLike[str],
    *,
    weights: str,
    hints: InferenceHints | None = None,
    file_format: str | None = None,
    deform: str | None = None,
    size: tuple[int, int] | None = None,
    half: bool = False,
    observe: Callable[[str], None] = lambda _: None,
) -> Report:
    """Write a network to a file that other programs run, and that `StereoMatcher` opens like a network.

    Args:
        network: With its weights.
        path: Where; OpenVINO also writes a .bin file beside it.  Older files there survive any failure.
        weights: What the file says of its weights: "sha256:…" or "random".
        hints: What the weights recommend for inference.
        file_format: One of `FORMATS`; None goes by the suffix of the path.
        deform: For ONNX, "native" (DeformConv, opset 19) or "decomposed" (operators that every runtime has).
        size: The one height and width the file takes, for a batch of one; None: all multiples.
        half: Store weights as float16.
        observe: Called with what is being done.
    """
    target = Path(path)
    chosen = _format(target, file_format)
    _check_size(network, size)
    if half and chosen == "torch":
        raise AanetError(
            "A torch.export program stores float32 here; float16 can be had with onnx or openvino."
        )
    spec = spec_of(network, hints)
    if size is None:
        spec = replace(spec, sizes=free_sizes(network))
    description = Description(
        spec, weights, size, _deformable(network, chosen, deform), "float16" if half else "float32"
    )
    stored = simplified(network, half)
    with atomic_path(target) as temporary:
        beside = temporary.with_suffix(".bin")
        try:
            observe(f"Writing {spec.name} as {chosen}")
            _writer(chosen)(stored, description, temporary)
            observe("Comparing with PyTorch")
            exported = open_exported(temporary)
            reference = TorchEngine(network, "cpu")
            parity = compare(
                exported,
                TorchEngine(stored, "cpu") if half else reference,
                size or _parity_size(network),
                reference,
            )
            parity.require()
            if beside.is_file():
                beside.replace(target.with_suffix(".bin"))
        finally:
            beside.unlink(missing_ok=True)
    return Report(target, description, parity, exported.description)


def _format(path: Path, asked: str | None) -> str:
    suffixes = {suffix: name for name, suffix in FORMATS.items()}
    if asked is not None and asked not in FORMATS:
        raise AanetError(f"The format must be {', '.join(FORMATS)}; got {asked!r}.")
    if path.suffix not in suffixes or asked not in (None, suffixes[path.suffix]):
        expected = FORMATS[asked] if asked else f"{', '.join(suffixes)}"
        raise AanetError(
            f"The file's suffix says how it is used later and must be {expected}; got {path.name}."
        )
    return suffixes[path.suffix]


def _check_size(network: StereoNetwork, size: tuple[int, int] | None) -> None:
    name = network.architecture.builder
    if size is not None:
        network.sizes.check(*size, name)
    elif not zoo.card(name).one_graph:
        raise AanetError(
            f"{name} can be exported for one image size only, because its graph is another one for every "
            "size; give --height and --width."
        )


def _deformable(network: StereoNetwork, file_format: str, asked: str | None) -> str:
    """How the file writes deformable convolutions."""
    if asked is not None and (file_format != "onnx" or asked not in DEFORM):
        raise AanetError(
            f"--deform is for onnx, and must be {' or '.join(DEFORM)}; got {asked} for {file_format}."
        )
    if not any(isinstance(module, DeformConv2d) for module in network.modules()):
        return "none"
    return "decomposed" if file_format == "torch" else asked or "native"


def _writer(file_format: str) -> Callable[[StereoNetwork, Description, Path], None]:
    """What writes a format; its libraries are loaded only for it."""
    if file_format == "onnx":
        for package in ("onnx", "onnxscript", "onnxruntime"):
            if importlib.util.find_spec(package) is None:
                raise MissingExtraError(
                    f"ONNX needs the package {package}: `pip install aanet[export]` brings it."
                )
        from aanet.export.onnx_export import write_onnx

        return write_onnx
    if file_format == "openvino":
        from aanet.export.openvino_export import write_openvino

        return write_openvino
    from aanet.export.torch_export import write_program

    return write_program


def _parity_size(network: StereoNetwork) -> tuple[int, int]:
    height, width = (free_sizes(network).round_up(side) for side in _PARITY_SIZE)
    return height, width
