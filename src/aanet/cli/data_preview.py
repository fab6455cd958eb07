"""`aanet data preview`: a contact sheet of synthetic scenes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aanet.cli.console import track
from aanet.cli.options import (
    ImageHeight,
    ImageWidth,
    Overwrite,
    SceneDisparity,
    Seed,
    Textures,
    refuse_existing,
)

if TYPE_CHECKING:
    from aanet.data.sample import StereoSample
    from aanet.typing import Image


def preview(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Image to write.")] = Path(
        "preview.png"
    ),
    count: Annotated[
        int, typer.Option("--count", "-n", metavar="N", min=1, max=64, help="Number of scenes.")
    ] = 8,
    seed: Seed = 0,
    first: Annotated[int, typer.Option(metavar="N", min=0, help="Index of the first scene.")] = 0,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Kind of scene: room, street, corridor, table_top, studio, flying or photo.",
            show_default="a mixture",
        ),
    ] = None,
    height: ImageHeight = 288,
    width: ImageWidth = 576,
    max_disparity: SceneDisparity = 192,
    textures: Textures = None,
    overwrite: Overwrite = False,
) -> None:
    """Draw synthetic scenes as one image.

    Each row shows both views, the disparity, and in red the pixels that the right camera does not see.

    Example: aanet data preview -n 4 -o preview.png
    """
    refuse_existing(overwrite, output)
    from aanet.io.images import write_image
    from aanet.synthetic import SyntheticWorld
    from aanet.viz import panel

    kinds = None if kind is None else {kind: 1.0}
    world = SyntheticWorld((height, width), max_disparity, seed, textures, first + count, kinds)
    images: list[Image] = []
    titles: list[str] = []
    for index in track(range(first, first + count), "Rendering scenes", count):
        for title, image in _row(world[index]):
            titles.append(title)
            images.append(image)
    write_image(output, panel(images, titles, columns=4))
    typer.echo(f"Wrote {count} scenes to {output}.")


def _row(sample: StereoSample) -> list[tuple[str, Image]]:
    """The four images of one scene with their titles."""
    import numpy as np

    from aanet.viz import colorize_disparity

    assert sample.disparity is not None
    assert sample.visible is not None
    low, high = float(sample.disparity.min()), float(sample.disparity.max())
    occluded = (sample.left * 0.6).astype(np.uint8)
    occluded[~sample.visible] = (220, 50, 40)
    return [
        (sample.name.rsplit("/", 1)[-1], sample.left),
        ("right", sample.right),
        (f"disparity {low:.1f} to {high:.1f} px", colorize_disparity(sample.disparity)),
        (f"occluded: {100 * (1 - sample.visible.mean()):.0f} %", occluded),
    ]
