"""`aanet export`: a network as a file for ONNX Runtime, OpenVINO or PyTorch, held against PyTorch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aanet.errors import InputError

if TYPE_CHECKING:
    from aanet.export.exporting import Report


def export(
    model: Annotated[str, typer.Argument(help="A network, or the name or file of weights.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file: .onnx, .xml (OpenVINO) or .pt2 (torch.export).")
    ],
    file_format: Annotated[
        str | None,
        typer.Option("--format", help="onnx, openvino or torch; by the file's suffix if not given."),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="A file or name of weights; 'random' to try things out.")
    ] = None,
    deform: Annotated[
        str | None,
        typer.Option(
            help="For ONNX: native (DeformConv, opset 19; the default) or decomposed (operators that every "
            "runtime has)."
        ),
    ] = None,
    height: Annotated[
        int | None, typer.Option(min=1, help="Of the images, with --width; every size if not given.")
    ] = None,
    width: Annotated[int | None, typer.Option(min=1, help="Of the images, with --height.")] = None,
    half: Annotated[bool, typer.Option("--half", help="Store float16: half the size (not torch).")] = False,
    max_disparity: Annotated[int | None, typer.Option(help="Pixels to search.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a report.")] = False,
) -> None:
    """Export a network, compare the file with PyTorch, and keep it only if both agree to 0.01 pixels.

    The file takes RGB images in 0 … 1 and gives disparity and confidence; it says what it holds and which
    sizes it takes in its own metadata.  `aanet predict LEFT RIGHT --model FILE` runs it.
    """
    if (height is None) != (width is None):
        raise InputError("Give both --height and --width for one size, or neither for every size.")
    size = None if height is None or width is None else (height, width)
    from rich.console import Console

    with Console(stderr=True).status("Loading the network") as status:
        from aanet.export.exporting import export_network
        from aanet.export.sources import open_network

        source = open_network(model, weights, max_disparity)
        report = export_network(
            source.network,
            output,
            weights=source.weights,
            hints=source.hints,
            file_format=file_format,
            deform=deform,
            size=size,
            half=half,
            observe=status.update,
        )
    if as_json:
        typer.echo(json.dumps(_as_dict(report), indent=2))
        return
    typer.echo(_sentences(report))


def _as_dict(report: Report) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "path": str(report.path),
        "bytes": _bytes(report.path),
        "engine": report.engine,
        "description": report.description.properties(),
        "parity": asdict(report.parity),
    }


def _sentences(report: Report) -> str:
    parity, spec = report.parity, report.description.spec
    sizes = (
        f"every size that is a multiple of {spec.sizes.multiple} and at least {spec.sizes.minimum}"
        if report.description.size is None
        else "images of {}×{}".format(*report.description.size)
    )
    lines = [
        f"{report.path}: {spec.name} for {sizes}, disparities below {spec.max_disparity}, "
        f"{_bytes(report.path) / 1e6:.1f} MB.",
        f"On {parity.pair} it differs from PyTorch by at most {parity.disparity.max_px:.1e} pixels, "
        f"{parity.disparity.mean_px:.1e} on average.",
    ]
    if parity.rounding is not None:
        lines.append(
            f"Rounding the weights to float16 moves it by at most {parity.rounding.max_px:.1e} pixels, "
            f"{parity.rounding.mean_px:.1e} on average."
        )
    lines.append(
        f"A prediction takes {1e3 * parity.exported_seconds:.0f} ms ({report.engine}); "
        f"with PyTorch {1e3 * parity.torch_seconds:.0f} ms."
    )
    return "\n".join(lines)


def _bytes(path: Path) -> int:
    """The size of what was written; OpenVINO's weights lie beside its graph."""
    files = [path, path.with_suffix(".bin")] if path.suffix == ".xml" else [path]
    return sum(file.stat().st_size for file in files)
