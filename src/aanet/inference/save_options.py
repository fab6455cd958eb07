"""The options of saving a result."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aanet.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from aanet.viz import ColorRange


@dataclass(frozen=True)
class SaveOptions:
    """What depth and points omit, and the colors of pictures; keyword arguments of `StereoResult.save`.

    Attributes:
        min_confidence: Omit depths and points of lower confidence, 0 … 1.
        max_depth: Omit depths and points that are farther away, in meters.
        flying_pixels: Keep points between two surfaces, at edges.
        range: The range of the colors: two disparities, or text such as "5:80" in pixels or "0.5:10m" in
            meters; by default the 1st and the 99th percentile of each result.
    """

    min_confidence: float = 0.0
    max_depth: float = math.inf
    flying_pixels: bool = False
    range: ColorRange | tuple[float, float] | str | None = None

    def __post_init__(self) -> None:
        require_filter(self.min_confidence, self.max_depth)
        if not isinstance(self.flying_pixels, bool):
            raise InputError(f"flying_pixels must be True or False; got {self.flying_pixels!r}.")
        self.color_range()

    @classmethod
    def of(cls, given: dict[str, Any]) -> SaveOptions:
        """The options of these names."""
        known = [field.name for field in dataclasses.fields(cls)]
        for name in given:
            if name not in known:
                hint = did_you_mean(name, known)
                raise InputError(f"Saving has no option {name!r}{hint}; known: {', '.join(known)}.")
        return cls(**given)

    def color_range(self) -> ColorRange | None:
        """The range of the colors; None if it is that of each result."""
        if self.range is None:
            return None
        from aanet.viz import ColorRange

        return ColorRange.of(self.range)


def require_filter(min_confidence: float, max_depth: float) -> None:
    """Refuse limits that no value can meet or that are no numbers."""
    numbers = [isinstance(value, int | float) for value in (min_confidence, max_depth)]
    if not (numbers[0] and 0 <= min_confidence <= 1):
        raise InputError(f"min_confidence must be from 0 to 1; got {str(min_confidence)[:30]}.")
    if not (numbers[1] and max_depth > 0):
        raise InputError(f"max_depth must be above 0 meters; got {str(max_depth)[:30]}.")
