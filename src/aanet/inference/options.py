"""The options of a match."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, get_args

from aanet.errors import InputError, did_you_mean
from aanet.inference.hints import InferenceHints
from aanet.inference.spec import NetworkSpec
from aanet.inference.tiling import Tile

Scale = float | Literal["auto"]
TileChoice = Tile | tuple[int, int] | str | None
ParsedTile = Tile | Literal["auto"] | None
Postprocess = Literal["auto", "none", "all"]

MIN_SCALE, MAX_SCALE = 0.05, 8.0  # below, hardly anything of an image is left to match

_POSTPROCESSING = {"none": InferenceHints(), "all": InferenceHints(sharpen_edges=True, fill_border=True)}


@dataclass(frozen=True)
class MatchOptions:
    """The options of a match; each of them is also a keyword argument of `StereoMatcher.__call__`.

    Attributes:
        scale: Resize the images by this factor before matching; disparities are still in pixels of the given
            images.  0.5 is four times as fast and doubles the disparity range.  "auto" is 1, or more for
            narrow images if the weights recommend it.
        check: Also match from right to left, and mark pixels whose disparities disagree as occluded.
        tile: Height and width of the tiles in which large images are matched, as a pair or as text
            ("1024x1536").  "none" or None matches the whole image at once; "auto" does so if that needs at
            most half of the free memory.
        postprocess: "all" sharpens blurred edges and fills the left border, which the right camera does not
            see; "none" keeps the prediction as it is; "auto" follows the recommendation of the weights.
        inspect: Check the pair for common mistakes, which takes about 30 ms, and warn about them.
        strict: Refuse the pair, before it is matched, if the checks warn about anything; notes are no reason.
    """

    scale: Scale = "auto"
    check: bool = False
    tile: TileChoice = "auto"
    postprocess: Postprocess = "auto"
    inspect: bool = True
    strict: bool = False

    def __post_init__(self) -> None:
        number = isinstance(self.scale, int | float) and not isinstance(self.scale, bool)
        if self.scale != "auto" and not (number and MIN_SCALE <= self.scale <= MAX_SCALE):
            got = repr(self.scale)[:30]
            raise InputError(f"The scale must be from {MIN_SCALE:g} to {MAX_SCALE:g}, or auto; got {got}.")
        choices = get_args(Postprocess)
        if self.postprocess not in choices:
            raise InputError(f"postprocess must be one of {', '.join(choices)}; got {self.postprocess!r}.")
        for name in ("check", "inspect", "strict"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} must be True or False; got {getattr(self, name)!r}.")
        self.parsed_tile()

    @classmethod
    def of(cls, options: MatchOptions | None, changes: dict[str, Any]) -> MatchOptions:
        """Return the options, or the defaults, with some of them changed by name."""
        if options is not None and not isinstance(options, cls):
            raise InputError(f"options must be a MatchOptions; got {options!r}.")
        known = [field.name for field in dataclasses.fields(cls)]
        for name in changes:
            if name not in known:
                hint = did_you_mean(name, known)
                raise InputError(f"A match has no option {name!r}{hint}; known: {', '.join(known)}.")
        return dataclasses.replace(options or cls(), **changes)

    def parsed_tile(self) -> ParsedTile:
        """The tile in one of its three forms; None is the whole image."""
        if self.tile is None or self.tile == "none":
            return None
        if self.tile == "auto":
            return "auto"
        try:
            sides = (
                self.tile.lower().replace("×", "x").split("x") if isinstance(self.tile, str) else self.tile
            )
            height, width = (int(side) for side in (sides if len(sides) == 2 else (*sides, *sides)))
        except (TypeError, ValueError):
            height = width = 0
        if height <= 0 or width <= 0:
            message = "The tile must be auto, none, or HEIGHTxWIDTH in pixels, such as 1024x1536"
            raise InputError(f"{message}; got {repr(self.tile)[:30]}.")
        return Tile(height, width)

    def scale_for(self, spec: NetworkSpec, width: int) -> float:
        """The scale at which to match images of this width."""
        return spec.hints.scale_for(width) if self.scale == "auto" else float(self.scale)

    def hints(self, spec: NetworkSpec) -> InferenceHints:
        """The hints that post-processing follows."""
        return _POSTPROCESSING.get(self.postprocess, spec.hints)
