"""Composed pictures: a colored map with its scale bar, and panels of images with titles."""

from __future__ import annotations

import math
from collections.abc import Sequence

import cv2
import numpy as np

from aanet.errors import InputError
from aanet.typing import Image
from aanet.viz.color import PAPER, nearness, turbo
from aanet.viz.text import Label, draw_labels, text_size, text_width, wrap

_MIN_COLUMN = 160  # pixels; titles of narrower images would have one word per line


def with_scale_bar(image: Image, vmin: float, vmax: float, unit: str) -> Image:
    """Add a scale bar to the right of a colored map; `unit` is "px" for disparity or "m" for depth."""
    height, width = image.shape[:2]
    text = text_size(width)
    bar, gap = max(10, text), max(8, text // 2)
    # The width depends on the image only, so that all pictures of a video have one size.
    canvas = np.full((height, width + bar + 2 * gap + 4 * text, 3), PAPER, np.uint8)
    canvas[:, :width] = image
    canvas[:, width + gap : width + gap + bar] = turbo()[np.linspace(255, 0, height).astype(int)][:, None]
    labels: list[Label] = []
    for value in ticks(vmin, vmax, unit, count=max(3, min(8, height // (4 * text)))):
        y = (1 - float(nearness(value, vmin, vmax, unit))) * (height - 1)
        y = min(max(y, 0.6 * text), height - 0.6 * text)  # keeps labels at the ends inside the picture
        if all(abs(y - other.y) >= text for other in labels):
            labels.append(Label(width + 1.5 * gap + bar, y, f"{value:g} {unit}"))
    room = canvas.shape[1] - (width + 1.5 * gap + bar)
    longest = max((text_width(label.text, text) for label in labels), default=0)
    return draw_labels(canvas, labels, math.floor(text * min(1.0, room / max(longest, 1))))


def panel(images: Sequence[Image], titles: Sequence[str], columns: int = 2) -> Image:
    """Arrange images in rows, scaled to one height, each below its title.  Long titles are wrapped."""
    if not images or len(images) != len(titles):
        raise InputError(f"A panel needs one title for each image; got {len(images)} and {len(titles)}.")
    columns = min(columns, len(images))
    height = max(image.shape[0] for image in images)
    fitted = [_fit_height(image, height) for image in images]
    text = text_size(max(image.shape[1] for image in fitted))
    widths = [
        _column_width(fitted[column::columns], titles[column::columns], text) for column in range(columns)
    ]
    wrapped = [wrap(title, text, widths[index % columns]) for index, title in enumerate(titles)]
    lines = [max(map(len, wrapped[first : first + columns])) for first in range(0, len(images), columns)]
    gap, line = max(8, text // 2), round(1.3 * text)
    heads = [2 * text + max(count - 1, 0) * line for count in lines]
    canvas = np.full(
        (sum(heads) + len(heads) * (height + gap), sum(widths) + (columns + 1) * gap, 3), PAPER, np.uint8
    )
    labels: list[Label] = []
    for index, image in enumerate(fitted):
        row, column = divmod(index, columns)
        left = gap + sum(widths[:column]) + column * gap
        top = sum(heads[: row + 1]) + row * (height + gap)
        canvas[top : top + height, left : left + image.shape[1]] = image
        for above, words in enumerate(reversed(wrapped[index])):
            labels.append(Label(left, top - 0.9 * text - above * line, words))
    return draw_labels(canvas, labels, text)


def ticks(vmin: float, vmax: float, unit: str, count: int) -> list[float]:
    """Round numbers within the scale; on a long logarithmic scale in steps of 1, 2, 5."""
    from matplotlib.ticker import MaxNLocator

    values = [float(value) for value in MaxNLocator(count, steps=[1, 2, 5, 10]).tick_values(vmin, vmax)]
    if unit == "m" and vmax > 4 * vmin:
        decades = range(math.floor(math.log10(vmin)), math.ceil(math.log10(vmax)) + 1)
        values = [digit * 10.0**decade for decade in decades for digit in (1, 2, 5)]
    return [value for value in values if vmin <= value <= vmax]


def _column_width(images: Sequence[Image], titles: Sequence[str], text: int) -> int:
    """The width of the widest image, or more if a word of the titles needs it."""
    words = [math.ceil(text_width(word, text)) for title in titles for word in title.split()]
    return max([_MIN_COLUMN, *(int(image.shape[1]) for image in images), *words])


def _fit_height(image: Image, height: int) -> Image:
    if image.shape[0] == height:
        return image
    width = round(image.shape[1] * height / image.shape[0])
    return cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA).astype(np.uint8)
