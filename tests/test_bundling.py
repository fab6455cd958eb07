"""`scripts/bundle_weights.py`: from a run's folder to a scored file with a card."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import layouts
from aanet import weight_files
from aanet.data.sample import StereoSample
from aanet.engines.networks import random_network
from aanet.models import weights

SCRIPT = Path(__file__).parents[1] / "scripts" / "bundle_weights.py"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with a folder of its own for the weights and a small pair for the Motorcycle."""
    spec = importlib.util.spec_from_file_location("bundle_weights", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    image = np.random.default_rng(0).integers(0, 256, (60, 96, 3), dtype=np.uint8)
    truth = np.full((60, 96), 4.0, np.float32)
    truth[:, 50:] = 8.0  # an edge to be scored at
    pair = StereoSample("small", image, image, truth, np.ones_like(truth, bool))
    monkeypatch.setattr(module, "motorcycle", lambda: pair)
    monkeypatch.setattr(module, "BUNDLED", tmp_path / "weights")
    monkeypatch.setattr(weight_files, "BUNDLED", tmp_path / "weights")
    return module


def test_a_run_becomes_a_scored_file_with_a_card(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    network = random_network("stereonet_aa", 192)
    weights.save(
        network, run / "weights-with-heads.safetensors", facts={"recipe_digest": "abc", "steps": "7"}
    )
    middlebury = layouts.middlebury2006(tmp_path / "middlebury")
    kitti = layouts.kitti2015(tmp_path / "kitti", frames=(0, 1))
    arguments = [
        "--hours",
        "1.5",
        "--enlarge-to",
        "200",
        "--middlebury",
        str(middlebury),
        "--kitti",
        str(kitti),
    ]
    monkeypatch.setattr(sys, "argv", ["bundle_weights.py", str(run), *arguments])
    script.main()
    assert weight_files.bundled_names() == ["stereonet_aa"]
    facts = weight_files.facts("stereonet_aa")
    assert (facts["hours"], facts["recipe_digest"], facts["steps"]) == (1.5, "abc", 7)
    for scores in facts["scores"].values():
        assert set(scores) == set(script.SETS)
        assert all(value >= 0 for metrics in scores.values() for value in metrics.values())
    # The same image twice has no disparity anywhere: SGBM finds that, and is off by all of the truth.
    assert facts["scores"]["sgbm"]["motorcycle"]["epe"] == pytest.approx((50 * 4 + 46 * 8) / 96, abs=0.5)
    # Every image here is narrow, so it is matched enlarged unless that is turned off.
    assert facts["enlarge_to"] == weights.load(weight_files.bundled_file("stereonet_aa")).enlarge_to == 200
    assert facts["scores"]["stereonet_aa"] != facts["scores"][script.OWN_SIZE]
    card = weight_files.card_file("stereonet_aa").read_text(encoding="utf-8")
    assert "narrower than 200 pixels are enlarged to that width" in card
    assert "1.5 hours" in card
    assert card.count("| KITTI 2015") == len(facts["scores"]["stereonet_aa"]["kitti2015"])
