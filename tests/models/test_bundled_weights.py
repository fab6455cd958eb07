"""The weights in the package do what their cards say."""

from __future__ import annotations

import numpy as np
import pytest

from aanet.data.motorcycle import motorcycle
from aanet.matcher import StereoMatcher
from aanet.models.weights import files

NAMES = files.bundled_names()
LARGEST = {"aanet_fast": 10e6, "aanet": 9e6, "stereonet_aa": 1.3e6}  # bytes


def test_weights_come_with_the_package() -> None:
    assert "aanet" in NAMES


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_motorcycle_is_predicted_as_well_as_the_card_says(name: str) -> None:
    sample = motorcycle()
    assert sample.disparity is not None
    result = StereoMatcher(name)(sample.left, sample.right)
    error = np.abs(result.disparity - sample.disparity)[sample.valid]
    card = files.facts(name)["scores"][name]["motorcycle"]
    assert float(error.mean()) == pytest.approx(card["epe"], abs=0.05)
    assert float(100 * (error > 2).mean()) == pytest.approx(card["bad2"], abs=0.5)
    assert result.warnings == []


@pytest.mark.parametrize("name", NAMES)
def test_a_card_says_what_the_file_knows(name: str) -> None:
    facts = files.facts(name)
    card = " ".join(files.card_file(name).read_text(encoding="utf-8").split())
    for key in ("trained_on", "license", "recipe_digest", "released"):
        assert str(facts[key]) in card, key
    for metrics in facts["scores"][name].values():
        assert all(f"{value:.2f}" in card for value in metrics.values())
    assert "## Limits" in card
    assert files.bundled_file(name).stat().st_size < LARGEST[name]
