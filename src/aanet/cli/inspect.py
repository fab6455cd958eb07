"""`aanet inspect`: what a network file is, and how to feed it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aanet.cli.console import status
from aanet.cli.options import JsonOutput, NetworkSpec, Overwrite, refuse_existing
from aanet.errors import ReadError, UnsupportedError

if TYPE_CHECKING:
    from aanet.engines.foreign.inspection import Inspection
    from aanet.engines.foreign.spec import Table

_SHOWN = 8  # readings


def inspect_file(
    file: Annotated[
        Path, typer.Argument(help="The network: .onnx, .xml (OpenVINO IR) or .pb (frozen TensorFlow graph).")
    ],
    network_spec: NetworkSpec = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the spec to this TOML file."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: JsonOutput = False,
) -> None:
    """Tell what a network file is, and find out how to feed it and to read its result.

    A network that another program wrote is run on a real pair with ground truth in every plausible way; the
    one way that is right is printed as a spec, which --model then uses by itself. The exit code is 2 if none
    is.

    Example: aanet inspect eth3d.pb -o eth3d.toml
    """
    from aanet.engines.foreign.files import is_foreign

    if not file.exists():
        raise ReadError(f"{file} does not exist; expected a network file.")
    if output is not None:
        refuse_existing(overwrite, output)
    if not is_foreign(file):
        _show_own(file, as_json)
        return
    from aanet.engines.foreign.inspection import inspect_file as inspect_foreign
    from aanet.engines.foreign.opening import find_spec
    from aanet.io.atomic import write_bytes

    given, origin = find_spec(file, network_spec)
    with status(f"Opening {file.name} and trying it on a real pair"):
        _, found = inspect_foreign(file, given, origin=origin)
    if as_json:
        typer.echo(json.dumps(_as_json(file, found), indent=2))
    else:
        _show(file, found)
    if found.spec is None:
        raise UnsupportedError(found.problem)
    if output is not None:
        write_bytes(output, found.spec.to_toml().encode())
        if not as_json:
            typer.echo(f"Written to {output}.")


def _show(file: Path, found: Inspection) -> None:
    """Print the facts, the readings and the spec."""
    graph = found.graph
    facts = [graph.format]
    facts += [f"by {graph.producer}"] if graph.producer else []
    facts += [f"opset {graph.opset}"] if graph.opset else []
    facts += [f"{graph.parameters / 1e6:.2f} M parameters"] if graph.parameters is not None else []
    typer.echo(f"{file}: {', '.join(facts)}; runs on {graph.runs_on}")
    for kind, ports in (("input", graph.inputs), ("output", graph.outputs)):
        for port in ports:
            typer.echo(f"  {kind:6s}  {port.shown}")
    typer.echo("Mean error on the Motorcycle pair at half size, in pixels:")
    for table, error in found.tried[:_SHOWN]:
        shown = f"{error:8.2f}" if math.isfinite(error) else "       –"
        typer.echo(f"{shown}  {_in_words(table)}")
    if len(found.tried) > _SHOWN:
        typer.echo(f"          … and {len(found.tried) - _SHOWN} other readings, all of them worse")
    if found.spec is not None:
        typer.echo(f"\nSpec ({found.origin}); about {found.bytes_per_pixel} bytes of memory per pixel:\n")
        typer.echo(found.spec.to_toml())


def _in_words(table: Table) -> str:
    """Describe a reading in one line."""
    image, output = table["image"], table["output"]
    inputs = ", ".join(f"{each['name']} ← {each['content']}" for each in table["input"])
    low, high = image["range"]
    numbers = f"{low:g} … {high:g}" + (" normalized" if "mean" in image or "std" in image else "")
    sign = "−" if output["sign"] == "negative" else ""
    unit = " of the width" if output["unit"] == "width" else ""
    scale = f" × {output['scale']:g}" if output["scale"] != 1 else ""
    return (
        f"{inputs}; {image['layout']} {image['color']} {numbers}; "
        f"{sign}{output['name']}[{output['channel']}]{scale}{unit}"
    )


def _as_json(file: Path, found: Inspection) -> dict[str, Any]:
    return {
        "file": str(file),
        "kind": "foreign",
        **found.graph.as_dict(),
        "tried": [
            {"spec": table, "error": error if math.isfinite(error) else None} for table, error in found.tried
        ],
        "spec": None if found.spec is None else found.spec.to_table(),
        "problem": found.problem,
        "origin": found.origin,
        "bytes_per_pixel": found.bytes_per_pixel,
    }


def _show_own(file: Path, as_json: bool) -> None:
    """Tell that a file is an export or a weight file of this package, which need no spec."""
    from aanet.engines.table import exported_suffixes

    if file.suffix in exported_suffixes():
        from aanet.engines.exported import open_exported

        engine = open_exported(file)
        kind, title, spec, runs_on = "export", "an export of this package", engine.spec, engine.description
    else:
        from aanet.engines.graph import spec_of
        from aanet.models.weights import checkpoint

        stored = checkpoint.read(file)
        kind, title, runs_on = "weights", "weights of a network of this package", "any engine"
        spec = spec_of(stored.network(), stored.hints)
    if as_json:
        facts = {"file": str(file), "kind": kind, "network": spec.name, "max_disparity": spec.max_disparity}
        typer.echo(json.dumps(facts, indent=2))
        return
    typer.echo(
        f"{file}: {title} ({spec.name}, disparities below {spec.max_disparity} pixels; runs on {runs_on}); "
        "use it with --model as it is."
    )
