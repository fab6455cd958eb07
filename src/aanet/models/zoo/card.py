"""What is known of a network before it is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aanet.errors import AanetError
from aanet.models.network import StereoNetwork

Builder = Callable[[int, bool], StereoNetwork]


@dataclass(frozen=True, kw_only=True)
class Card:
    """What to know of a network before building it; all facts about it that code elsewhere needs.

    Attributes:
        title: Its name in publications.
        build: Builds it from a maximum disparity, with or without training heads.
        summary: One line for people.
        bytes_per_pixel: What a prediction takes at its peak with 192 disparities, as measured with OpenVINO
            (GA-Net: with torch, which takes up to half as much again), apart from the correlation.
        correlates: Whether it correlates whole rows, which needs more memory per pixel of a wide image.
        fixed_range: Whether its weights fix the maximum disparity: 3D convolutions slide over any number of
            candidates, adaptive aggregation has a weight for every candidate.
        one_graph: Whether one graph serves every image size.  Semi-global aggregation steps along rows and
            columns one by one, so its graph is another one for each size.
        replaces: The network whose 3D aggregation it replaces by the adaptive one, as in table 2.
        in_paper: Whether it is one of the paper's.
    """

    title: str
    build: Builder
    summary: str
    bytes_per_pixel: int
    correlates: bool = True
    fixed_range: bool = True
    one_graph: bool = True
    replaces: str | None = None
    in_paper: bool = True


def check_max_disparity(name: str, max_disparity: int, multiple: int) -> None:
    """Raise a plain error naming the nearest allowed values unless `max_disparity` is a positive multiple."""
    if max_disparity > 0 and max_disparity % multiple == 0:
        return
    below = max_disparity // multiple * multiple
    nearest = f"{below} or {below + multiple}" if below > 0 else f"{multiple}"
    raise AanetError(
        f"The maximum disparity of {name} must be a positive multiple of {multiple}, but {max_disparity} was "
        f"asked for; the nearest allowed: {nearest}."
    )
