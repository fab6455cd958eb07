"""What is done to a pair before and after the network: decided in one place, carried out, and reported."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from aanet.inference.options import MatchOptions
from aanet.inference.spec import NetworkSpec
from aanet.inference.tiling import Tile, tile_for


@dataclass(frozen=True)
class Processing:
    """What is done to the images of one pair, and to the predicted disparity.

    Attributes:
        scale: The factor by which the images are resized before matching.
        size: Height and width of the resized images.
        padded: Height and width after the outermost pixels are repeated to a size that the network takes.
        tile: Height and width of the tiles that are matched one by one; None if the whole image is matched.
        sharpen_edges: Whether blurred edges of the disparity are sharpened.
        fill_border: Whether the left border, which the right camera does not see, is filled.
    """

    scale: float
    size: tuple[int, int]
    padded: tuple[int, int]
    tile: Tile | None
    sharpen_edges: bool
    fill_border: bool

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "tile": self.tile and list(self.tile)}


def plan(options: MatchOptions, spec: NetworkSpec, height: int, width: int, available: int) -> Processing:
    """Decide what is done to images of one size.

    Args:
        options: The options of the match.
        spec: The network.
        height: Of the given images.
        width: Of the given images.
        available: Bytes of memory that a prediction may use.
    """
    scale, hints, tile = options.scale_for(spec, width), options.hints(spec), options.parsed_tile()
    size = (max(round(height * scale), 1), max(round(width * scale), 1))
    return Processing(
        scale=scale,
        size=size,
        padded=(spec.sizes.round_up(size[0]), spec.sizes.round_up(size[1])),
        tile=tile_for(spec, *size, available) if tile == "auto" else tile,
        sharpen_edges=hints.sharpen_edges,
        fill_border=hints.fill_border,
    )
