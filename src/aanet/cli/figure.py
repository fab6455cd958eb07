"""`aanet figure`: the sampling points of adaptive aggregation, drawn into the image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aanet.errors import InputError

if TYPE_CHECKING:
    from aanet.evaluation.sampling_points import SamplingPoints
    from aanet.typing import Image


def figure(
    left: Annotated[Path, typer.Argument(help="The left image.")],
    right: Annotated[Path, typer.Argument(help="The right image.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The picture to write.")] = Path(
        "sampling.png"
    ),
    at: Annotated[
        list[str] | None,
        typer.Option(
            help="A pixel as X,Y; again for several.  [default: one beside an edge, one without texture]"
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="A network with adaptive aggregation, or a file.")] = "aanet",
    weights: Annotated[str | None, typer.Option(help="A file or name of weights.")] = None,
    levels: Annotated[int, typer.Option(min=1, help="Layers to follow back from the last one.")] = 1,
) -> None:
    """Show where AANet looks for a pixel: its adaptive sampling points, as in the paper's figure."""
    pixels = [_pixel(text) for text in at or []]
    from rich.console import Console

    with Console(stderr=True).status("Matching"):
        from aanet.engines.torch import TorchEngine
        from aanet.evaluation.sampling_points import example_pixels, sampling_points
        from aanet.export.sources import open_network
        from aanet.io.images import as_rgb8, read_image, write_image
        from aanet.matcher import StereoMatcher
        from aanet.viz import colorize_disparity

        source = open_network(model, weights)
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
        raise InputError(f"A pixel is given as X,Y in whole numbers, as in 320,240; got {text!r}.")
    return int(parts[0]), int(parts[1])


def _panel(left: Image, disparity: Image, found: list[SamplingPoints]) -> Image:
    from aanet import viz
    from aanet.evaluation.sampling_points import draw_points

    pictures, titles = [], []
    for each in found:
        pictures += [draw_points(left, each), draw_points(disparity, each)]
        titles += [f"read for the pixel {each.pixel[0]}, {each.pixel[1]}", "on the disparity"]
    return viz.panel(pictures, titles)
