"""`aanet data preview`: a contact sheet of the procedural world."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from aanet.data.sample import StereoSample
    from aanet.typing import Image


def preview(
    output: Annotated[Path, typer.Option("--output", "-o", help="The picture to write.")] = Path(
        "preview.png"
    ),
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=64, help="How many scenes.")] = 8,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another seed is another world.")] = 0,
    first: Annotated[int, typer.Option("--first", min=0, help="Number of the first scene.")] = 0,
    kind: Annotated[
        str | None,
        typer.Option("--kind", help="Only room, street, table_top, flying or photo; a mixture if not given."),
    ] = None,
    height: Annotated[int, typer.Option("--height", help="Height of the images.")] = 288,
    width: Annotated[int, typer.Option("--width", help="Width of the images.")] = 576,
    max_disparity: Annotated[int, typer.Option("--max-disparity", help="Every disparity is below it.")] = 192,
    textures: Annotated[
        Path | None,
        typer.Option("--textures", help="Folder of photographs; generated textures if not given."),
    ] = None,
) -> None:
    """Draw scenes of the procedural world: both views, disparity, and what only one camera sees (red)."""
    from rich.progress import track

    from aanet.io.images import write_image
    from aanet.synthetic import SyntheticWorld
    from aanet.viz import panel

    kinds = None if kind is None else {kind: 1.0}
    world = SyntheticWorld((height, width), max_disparity, seed, textures, first + count, kinds)
    images: list[Image] = []
    titles: list[str] = []
    for index in track(range(first, first + count), "scenes", transient=True):
        for title, image in _row(world[index]):
            titles.append(title)
            images.append(image)
    write_image(output, panel(images, titles, columns=4))
    typer.echo(f"Drew {count} scenes to {output}.")


def _row(sample: StereoSample) -> list[tuple[str, Image]]:
    """The four pictures of one scene with their titles."""
    import numpy as np

    from aanet.viz import colorize_disparity

    assert sample.disparity is not None
    assert sample.visible is not None
    low, high = float(sample.disparity.min()), float(sample.disparity.max())
    once = (sample.left * 0.6).astype(np.uint8)
    once[~sample.visible] = (220, 50, 40)
    return [
        (sample.name.rsplit("/", 1)[-1], sample.left),
        ("right", sample.right),
        (f"disparity {low:.1f} to {high:.1f} px", colorize_disparity(sample.disparity)),
        (f"hidden from the right camera: {100 * (1 - sample.visible.mean()):.0f} %", once),
    ]
