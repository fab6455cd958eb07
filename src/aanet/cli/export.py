"""`aanet export`: write a network for ONNX Runtime, OpenVINO or torch.export, and verify the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aanet.cli.console import status
from aanet.cli.options import JsonOutput, Overwrite, refuse_existing
from aanet.errors import InputError

if TYPE_CHECKING:
    from aanet.export.exporting import Report


def export(
    model: Annotated[str, typer.Argument(help="A bundled model such as aanet, or a weight file.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write. Its suffix selects the format: .onnx, .xml (OpenVINO) or .pt2 "
            "(torch.export).",
        ),
    ],
    random_weights: Annotated[
        bool,
        typer.Option("--random-weights", help="Export the network untrained, to test a runtime with it."),
    ] = False,
    deform: Annotated[
        str | None,
        typer.Option(
            metavar="native|decomposed",
            help="Deformable convolutions in ONNX: as DeformConv (opset 19), or decomposed into operators "
            "that every runtime has.",
            show_default="native",
        ),
    ] = None,
    height: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Fixed image height.", show_default="any height"),
    ] = None,
    width: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Fixed image width.", show_default="any width")
    ] = None,
    half: Annotated[
        bool,
        typer.Option(
            "--half", help="Store the weights in float16, which halves the file size (not for .pt2)."
        ),
    ] = False,
    max_disparity: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Search disparities below this number of pixels.",
            show_default="as the model was trained",
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: JsonOutput = False,
) -> None:
    """Export a network for ONNX Runtime, OpenVINO or torch.export.

    The exported file is compared with PyTorch and kept only if the disparities agree to 0.01 pixels. It takes
    RGB images with values from 0 to 1 and returns disparity and confidence. Its metadata describe the network
    and the supported image sizes, so aanet predict --model FILE runs it.

    Example: aanet export aanet -o aanet.onnx
    """
    if (height is None) != (width is None):
        raise InputError("--height and --width must be given together, or neither of them for any size.")
    size = None if height is None or width is None else (height, width)
    refuse_existing(overwrite, *_files(output))
    with status("Loading the network") as shown:
        from aanet.export.exporting import export_network
        from aanet.export.sources import open_network

        source = open_network(model, "random" if random_weights else None, max_disparity)
        report = export_network(
            source.network,
            output,
            weights=source.weights,
            hints=source.hints,
            deform=deform,
            size=size,
            half=half,
            observe=shown.update,
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
        f"any size that is a multiple of {spec.sizes.multiple} and at least {spec.sizes.minimum}"
        if report.description.size is None
        else "images of {}×{}".format(*report.description.size)
    )
    lines = [
        f"Wrote {report.path} ({_bytes(report.path) / 1e6:.1f} MB): {spec.name} for {sizes}, "
        f"disparities below {spec.max_disparity}.",
        f"Difference from PyTorch on {parity.pair}: at most {parity.disparity.max_px:.1e} pixels, "
        f"{parity.disparity.mean_px:.1e} on average.",
    ]
    if parity.rounding is not None:
        lines.append(
            f"Difference due to float16 weights: at most {parity.rounding.max_px:.1e} pixels, "
            f"{parity.rounding.mean_px:.1e} on average."
        )
    lines.append(
        f"Time per prediction: {1e3 * parity.exported_seconds:.0f} ms with {report.engine}, "
        f"{1e3 * parity.torch_seconds:.0f} ms with PyTorch."
    )
    return "\n".join(lines)


def _bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in _files(path))


def _files(path: Path) -> list[Path]:
    """The files that an export consists of; OpenVINO stores the weights separately."""
    return [path, path.with_suffix(".bin")] if path.suffix == ".xml" else [path]
