"""What is done to a pair is decided once, carried out and stored with the result."""

from __future__ import annotations

import numpy as np
import pytest

from aanet.inference.hints import InferenceHints
from aanet.inference.processing import Processing
from aanet.inference.size_rule import SizeRule
from aanet.inference.tiling import Tile
from helpers.fake_engine import FakeEngine

IMAGE = np.random.default_rng(0).integers(0, 255, (50, 80, 3), np.uint8)


def engine(memory: int = 10**12) -> FakeEngine:
    hints = InferenceHints(upscale_to=100, sharpen_edges=True, fill_border=True)
    return FakeEngine(memory=memory, sizes=SizeRule(multiple=48), hints=hints)


def test_the_recommendations_of_the_weights_are_stored_with_the_result() -> None:
    fake = engine()
    result = fake.matcher(IMAGE, IMAGE)
    assert result.processing == Processing(1.25, (62, 100), (96, 144), None, True, True)
    assert fake.shapes == [(1, 3, 96, 144)]


def test_the_network_alone_is_stored_as_such() -> None:
    fake = engine()
    result = fake.matcher(IMAGE, IMAGE, scale=1, postprocess="none")
    assert result.processing == Processing(1.0, (50, 80), (96, 96), None, False, False)
    assert fake.shapes == [(1, 3, 96, 96)]


@pytest.mark.parametrize("choice", ["auto", "384x1000"])
def test_the_tile_that_was_used_is_stored(choice: str) -> None:
    large = np.zeros((1200, 900, 3), np.uint8)
    fake = engine(memory=10**6 if choice == "auto" else 10**12)
    processing = fake.matcher(large, large, tile=choice, inspect=False).processing
    assert processing is not None
    assert processing.tile == (Tile(384, 352) if choice == "auto" else Tile(384, 1000))
    assert len(fake.shapes) > 1
