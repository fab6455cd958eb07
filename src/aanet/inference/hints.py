"""Recommendations of weights for inference, which were found by experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from aanet.errors import ReadError

MAX_UPSCALE = 1.5  # largest factor by which small images are upscaled
MAX_WIDTH = 100_000  # limit of `upscale_to`


@dataclass(frozen=True)
class InferenceHints:
    """Recommendations that a checkpoint stores for the matcher; there are none by default.

    Attributes:
        upscale_to: Width in pixels to which narrower images should be upscaled; 0 for no upscaling.
        sharpen_edges: Whether to apply `postprocess.sharpen_edges`.
        fill_border: Whether to apply `postprocess.fill_left_border`.
    """

    upscale_to: int = 0
    sharpen_edges: bool = False
    fill_border: bool = False

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: str) -> InferenceHints:
        """Read hints stored in a file; error messages call it `source`."""
        known = asdict(cls())
        for key, value in values.items():
            if key not in known:
                raise ReadError(f"{source} has an unknown inference hint {key[:40]!r}.")
            kind = type(known[key])
            if type(value) is not kind:
                wanted = "true or false" if kind is bool else "a whole number"
                raise ReadError(f"{source} gives {value!r} for {key}; it must be {wanted}.")
        hints = cls(**values)
        if not 0 <= hints.upscale_to <= MAX_WIDTH:
            raise ReadError(f"{source} gives an upscale_to outside 0 … {MAX_WIDTH} pixels.")
        return hints

    def scale_for(self, width: int) -> float:
        """Return the scale at which to match images of this width: 1, or more for narrow ones.

        A network that matches at a third of the resolution misses structures of a few pixels.
        """
        return min(max(self.upscale_to / width, 1.0), MAX_UPSCALE)
