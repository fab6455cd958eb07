"""The card of a network: everything that the rest of the package needs without building it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aanet.errors import InputError
from aanet.models.network import StereoNetwork

Builder = Callable[[int, bool], StereoNetwork]


@dataclass(frozen=True, kw_only=True)
class Card:
    """Properties of a network that other parts of the package need before, or without, building it.

    Attributes:
        title: The name used in publications.
        build: Builds the network from a maximum disparity, with or without training heads.
        summary: A one-line description.
        when: In which cases to use it, in a sentence or two.
        bytes_per_pixel: Peak memory of a prediction with 192 disparities, without the correlation, measured
            with OpenVINO; torch needs up to 50 % more. GA-Net was measured with torch.
        correlates: Whether the network correlates whole rows, which takes more memory per pixel the wider the
            image is.
        fixed_range: Whether the weights fix the maximum disparity. Adaptive aggregation has weights per
            candidate; 3D convolutions work with any number of candidates.
        dynamic_shapes: Whether one exported graph works for all image sizes. Semi-global aggregation is
            unrolled along rows and columns, so its graph depends on the size.
        replaces: The network whose 3D aggregation this one replaces by adaptive aggregation (table 2).
        in_paper: Whether the network is part of the AANet paper.
    """

    title: str
    build: Builder
    summary: str
    when: str
    bytes_per_pixel: int
    correlates: bool = True
    fixed_range: bool = True
    dynamic_shapes: bool = True
    replaces: str | None = None
    in_paper: bool = True


def check_max_disparity(name: str, max_disparity: int, multiple: int) -> None:
    """Raise an error that names the nearest allowed values unless `max_disparity` is a positive multiple."""
    if max_disparity > 0 and max_disparity % multiple == 0:
        return
    below = max_disparity // multiple * multiple
    nearest = f"{below} or {below + multiple}" if below > 0 else f"{multiple}"
    raise InputError(
        f"The maximum disparity of {name} must be a positive multiple of {multiple}, but got "
        f"{max_disparity}; the nearest allowed: {nearest}."
    )
