"""Words that mark the left and the right side in the names of files, folders and topics."""

from __future__ import annotations

import re

SIDES = (
    *(("left", "right"), ("image_2", "image_3"), ("image_02", "image_03")),
    *(("im0", "im1"), ("view1", "view5"), ("cam0", "cam1"), ("infra1", "infra2"), ("l", "r")),
)


def without_side(name: str, side: str) -> str | None:
    """Return the name with the word `side` replaced by a space; None unless it occurs as a separate word."""
    # left01 contains the word left, but image_20 does not contain image_2.
    end = "[A-Za-z]" if side[-1].isalpha() else "[A-Za-z0-9]"
    word = re.compile(rf"(?<![A-Za-z]){side}(?!{end})", re.IGNORECASE)
    return word.sub(" ", name) if word.search(name) else None
