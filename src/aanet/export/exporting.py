"""Exporting a network to a file, which is verified against PyTorch before it replaces an older one."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from aanet.engines.exported import FixedSizeEngine, open_exported
from aanet.engines.graph import spec_of
from aanet.engines.torch import TorchEngine
from aanet.errors import InputError, MissingExtraError, UnsupportedError
from aanet.export.parity import Parity, compare
from aanet.export.recording import dynamic_sizes, simplify
from aanet.inference.description import Description
from aanet.inference.hints import InferenceHints
from aanet.inference.spec import Engine
from aanet.io.atomic import atomic_path, report_as_write_error, temporary_folder
from aanet.models import zoo
from aanet.models.layers import DeformConv2d
from aanet.models.network import StereoNetwork

FORMATS = {"onnx": ".onnx", "openvino": ".xml", "torch": ".pt2"}
DEFORM = ("native", "decomposed")
_PARITY_SIZE = (192, 288)  # minimum size of the comparison for files with dynamic sizes


@dataclass(frozen=True)
class Report:
    """The written file and its comparison with PyTorch."""

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
    """Write a network to a file for other runtimes; `StereoMatcher` opens all formats but torch.

    Args:
        network: The network with its weights.
        path: The file; OpenVINO also writes a .bin file next to it. Existing files are kept on failure.
        weights: The origin of the weights for the metadata: "sha256:…" or "random".
        hints: Recommendations of the weights for inference.
        file_format: One of `FORMATS`; None selects it by the suffix of the path.
        deform: For ONNX, "native" (DeformConv, opset 19) or "decomposed" (operators that every runtime has).
        size: Fixed height and width, for single images; None for dynamic batch, height and width.
        half: Store weights as float16.
        observe: Called with a description of each step.
    """
    target = Path(path)
    chosen = _format(target, file_format)
    _check_size(network, size)
    if half and chosen == "torch":
        raise UnsupportedError(
            "A torch.export program cannot store weights as float16; use the format onnx or openvino."
        )
    spec = spec_of(network, hints)
    if size is None:
        spec = replace(spec, sizes=dynamic_sizes(network))
    description = Description(
        spec, weights, size, _deformable(network, chosen, deform), "float16" if half else "float32"
    )
    stored = simplify(network, half)
    with _published(target) as temporary:
        observe(f"Writing {spec.name} as {chosen}")
        _writer(chosen)(stored, description, temporary)
        observe("Comparing with PyTorch")
        exported = _open(chosen, temporary, size)
        reference = TorchEngine(network, "cpu")
        parity = compare(
            exported,
            TorchEngine(stored, "cpu") if half else reference,
            size or _parity_size(network),
            reference,
        )
        parity.require()
    return Report(target, description, parity, exported.description)


@contextmanager
def _published(target: Path) -> Iterator[Path]:
    """Yield a temporary path; on success, what is written there replaces the target, on failure nothing."""
    if target.suffix != FORMATS["openvino"]:
        with atomic_path(target) as temporary:
            yield temporary
        return
    from aanet.engines.openvino.pair_files import publish

    with report_as_write_error(target), temporary_folder(target.parent) as folder:
        yield folder / target.name
        publish(folder / target.name, target)


def _format(path: Path, requested: str | None) -> str:
    suffixes = {suffix: name for name, suffix in FORMATS.items()}
    if requested is not None and requested not in FORMATS:
        raise InputError(f"The format must be {' or '.join(FORMATS)}; got {requested!r}.")
    if path.suffix not in suffixes or requested not in (None, suffixes[path.suffix]):
        expected = FORMATS[requested] if requested else " or ".join(suffixes)
        raise InputError(f"The file's suffix determines its format and must be {expected}; got {path.name}.")
    return suffixes[path.suffix]


def _check_size(network: StereoNetwork, size: tuple[int, int] | None) -> None:
    name = network.architecture.builder
    if size is not None:
        network.sizes.check(*size, name)
    elif not zoo.card(name).dynamic_shapes:
        raise UnsupportedError(
            f"{name} can only be exported for a fixed image size, because its graph depends on the size; "
            "give --height and --width."
        )


def _deformable(network: StereoNetwork, file_format: str, requested: str | None) -> str:
    """Return how the file represents deformable convolutions."""
    if requested is not None and requested not in DEFORM:
        raise InputError(f"--deform must be {' or '.join(DEFORM)}; got {requested!r}.")
    if requested is not None and file_format != "onnx":
        raise UnsupportedError(f"--deform applies to the format onnx only, not to {file_format}.")
    if not any(isinstance(module, DeformConv2d) for module in network.modules()):
        return "none"
    return "decomposed" if file_format == "torch" else requested or "native"


def _writer(file_format: str) -> Callable[[StereoNetwork, Description, Path], None]:
    """Return the function that writes a format; its libraries are imported only here."""
    if file_format == "onnx":
        for package in ("onnx", "onnxscript", "onnxruntime"):
            if importlib.util.find_spec(package) is None:
                raise MissingExtraError(
                    f"ONNX export needs the package {package}; install it with `pip install 'aanet[export]'`."
                )
        from aanet.export.onnx_export import write_onnx

        return write_onnx
    if file_format == "openvino":
        from aanet.export.openvino_export import write_openvino

        return write_openvino
    from aanet.export.torch_export import write_program

    return write_program


def _open(file_format: str, path: Path, size: tuple[int, int] | None) -> Engine:
    """Open a file that was just written."""
    if file_format != "torch":
        return open_exported(path)
    from aanet.export.torch_export import ProgramEngine

    program = ProgramEngine(path)
    return program if size is None else FixedSizeEngine(program, size)


def _parity_size(network: StereoNetwork) -> tuple[int, int]:
    height, width = (dynamic_sizes(network).round_up(side) for side in _PARITY_SIZE)
    return height, width
