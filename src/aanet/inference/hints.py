"""What weights recommend for inference: found by trying them, and no part of the network itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from aanet.errors import AanetError

MAX_UPSCALE = 1.5  # of small images


@dataclass(frozen=True)
class InferenceHints:
    """Recommendations that a checkpoint stores for the matcher; by default none.

    Attributes:
        upscale_to: Width in pixels at which smaller images are matched better; 0 if they are not.
        sharpen_edges: Whether `sharpen_edges` improves the disparity.
        fill_border: Whether `fill_left_border` is better than what the network predicts there.
    """

    upscale_to: int = 0
    sharpen_edges: bool = False
    fill_border: bool = False

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: str) -> InferenceHints:
        """Read the hints stored in a file, which `source` names in an error."""
        known = asdict(cls())
        for key, value in values.items():
            if key not in known:
                raise AanetError(f"{source} has an unknown inference hint {key!r}.")
            kind = type(known[key])
            if type(value) is not kind:
                wanted = "true or false" if kind is bool else "a whole number"
                raise AanetError(f"{source} gives {value!r} for {key}; it must be {wanted}.")
        return cls(**values)

    def scale_for(self, width: int) -> float:
        """Return the scale at which to match images of this width: 1, or more for small ones.

        A network that matches at a third of the image cannot see what is thinner than a few pixels.
        """
        return min(max(self.upscale_to / width, 1.0), MAX_UPSCALE)
