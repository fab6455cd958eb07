"""Text in pictures, drawn with Pillow, which is much faster than a matplotlib figure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import PIL.Image
from PIL import ImageDraw, ImageFont

from aanet.typing import Image

_INK = (32, 32, 32)


class Label(NamedTuple):
    """A line of text that begins at `x` and is vertically centered on `y`, in pixels from the top left."""

    x: float
    y: float
    text: str


def text_size(width: int) -> int:
    """The font size in pixels that is readable when a picture of this width is shown at page width."""
    return max(12, round(width / 45))


def text_width(text: str, size: int) -> float:
    """The width of a line of text in pixels."""
    return _font(size).getlength(text)


def wrap(text: str, size: int, width: float) -> list[str]:
    """Break a text between words into lines of at most `width` pixels, or of one word if it is longer."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def draw_labels(picture: Image, labels: Sequence[Label], size: int) -> Image:
    """Return the picture with the labels drawn into it."""
    canvas = PIL.Image.fromarray(picture)
    draw = ImageDraw.Draw(canvas)
    for label in labels:
        draw.text((label.x, label.y), label.text, fill=_INK, font=_font(size), anchor="lm")
    return np.array(canvas)


@lru_cache(maxsize=16)
def _font(size: int) -> ImageFont.FreeTypeFont:
    import matplotlib  # for its font, which covers most languages

    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf"), size)
