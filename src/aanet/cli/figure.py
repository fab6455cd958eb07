"""`aanet figure`: draw the sampling points of adaptive aggregation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aanet.cli.console import status
from aanet.cli.options import Overwrite, refuse_existing
from aanet.errors import InputError

if TYPE_CHECKING:
    from aanet.evaluation.sampling_points import SamplingPoints
    from aanet.typing import Image


def figure(
    left: Annotated[Path, typer.Argument(help="The left image.")],
    right: Annotated[Path, typer.Argument(help="The right image.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Image to write.")] = Path(
        "sampling.png"
    ),
    at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="X,Y",
            help="A pixel of the left image. May be repeated.",
            show_default="one next to an edge and one in a textureless area",
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="MODEL", help="A bundled model with adaptive aggregation, or the weight file of one."
        ),
    ] = "aanet",
    levels: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Number of aggregation layers to trace back from the last one."
        ),
    ] = 1,
    overwrite: Overwrite = False,
) -> None:
    """Draw the pixels that adaptive aggregation samples, as in the paper's figure.

    The sampling points of each chosen pixel are drawn on the left image and on its disparity map.

    Example: aanet figure left.png right.png --at 320,240 -o sampling.png
    """
    pixels = [_pixel(text) for text in at or []]
    refuse_existing(overwrite, output)
    with status("Matching"):
        from aanet.engines.torch import TorchEngine
        from aanet.evaluation.sampling_points import example_pixels, sampling_points
        from aanet.export.sources import open_network
        from aanet.io.images import as_rgb8, read_image, write_image
        from aanet.matcher import StereoMatcher
        from aanet.viz import colorize_disparity

        source = open_network(model)
        pair = as_rgb8(read_image(left)), as_rgb8(read_image(right))
        matcher = StereoMatcher.with_engine(TorchEngine(source.network, hints=source.hints))
        result = matcher(*pair)
        shown = pixels or example_pixels(pair[0], result.disparity)
        found = sampling_points(source.network, *pair, shown, levels)
        write_image(output, _panel(pair[0], colorize_disparity(result.disparity), found))
    for each in found:
        x, y = each.pixel
        reach = float(max(abs(each.points - (x, y)).max(axis=1), default=0))
        typer.echo(f"{x},{y}: {len(each.points)} points, the farthest {reach:.0f} pixels away")
    typer.echo(f"Wrote {output}.")


def _pixel(text: str) -> tuple[int, int]:
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdigit() for part in parts):
        raise InputError(f"A pixel must be given as X,Y in whole numbers, as in 320,240; got {text!r}.")
    return int(parts[0]), int(parts[1])


def _panel(left: Image, disparity: Image, found: list[SamplingPoints]) -> Image:
    from aanet import viz
    from aanet.evaluation.sampling_points import draw_points

    pictures, titles = [], []
    for each in found:
        pictures += [draw_points(left, each), draw_points(disparity, each)]
        titles += [f"sampling points of {each.pixel[0]}, {each.pixel[1]}", "on the disparity map"]
    return viz.panel(pictures, titles)
