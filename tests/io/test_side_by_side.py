from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aanet.errors import InputError
from aanet.io.images import write_image
from aanet.io.pairs import find_side_by_side


@pytest.mark.parametrize("source", ["both", "both/*.png"])
def test_images_of_both_views_are_cut_in_the_middle(source: str, tmp_path: Path) -> None:
    for name, gray in (("b", 30), ("a", 10)):
        write_image(tmp_path / f"both/{name}.png", np.repeat(np.uint8([[gray, gray + 5]]), 8, axis=1))
    (tmp_path / "both/notes.txt").write_text("not an image")
    found = find_side_by_side(tmp_path / source)
    assert [pair.name for pair in found] == ["a", "b"]
    for pair, gray in zip(found, (10, 30), strict=True):
        left, right = pair.load()
        assert left.shape == right.shape == (1, 8)
        assert (left == gray).all()
        assert (right == gray + 5).all()


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no images"):
        find_side_by_side(tmp_path)
