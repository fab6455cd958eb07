"""`scripts/bundle_weights.py`: from a run's folder to a scored file with a card."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from aanet.data.sample import StereoSample
from aanet.inference.hints import InferenceHints
from aanet.models.network import StereoNetwork
from aanet.models.weights import checkpoint, files
from helpers import layouts
from helpers.scripts import load_script
from helpers.small_networks import build_small


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with a folder of its own for the weights and a small pair for the Motorcycle."""
    module = load_script("bundle_weights")
    image = np.random.default_rng(0).integers(0, 256, (60, 96, 3), dtype=np.uint8)
    truth = np.full((60, 96), 4.0, np.float32)
    truth[:, 50:] = 8.0  # an edge to be scored at
    pair = StereoSample("small", image, image, truth, np.ones_like(truth, bool))
    monkeypatch.setattr(module, "motorcycle", lambda: pair)
    monkeypatch.setattr(module, "BUNDLED", tmp_path / "weights")
    monkeypatch.setattr(files, "BUNDLED", tmp_path / "weights")
    return module


def save_run(folder: Path, network: StereoNetwork, digest: str, steps: int) -> Path:
    folder.mkdir()
    facts = {"recipe_digest": digest, "steps": str(steps)}
    checkpoint.save(network, folder / "weights-with-heads.safetensors", facts=facts)
    return folder


@pytest.mark.slow
def test_runs_become_one_scored_file_with_a_card(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = build_small("stereonet_aa", 192)
    runs = [save_run(tmp_path / "first", network, "abc", 5)]
    first = {key: value.clone() for key, value in network.state_dict().items()}
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(1.5)
    runs.append(save_run(tmp_path / "second", network, "def", 7))
    middlebury = layouts.middlebury2006(tmp_path / "middlebury")
    kitti = layouts.kitti2015(tmp_path / "kitti", frames=(0, 1))
    arguments = [
        "--hours",
        "1.5",
        "--upscale-to",
        "200",
        "--sharpen-edges",
        "--fill-border",
        "--middlebury",
        str(middlebury),
        "--kitti",
        str(kitti),
    ]
    monkeypatch.setattr(sys, "argv", ["bundle_weights.py", *map(str, runs), *arguments])
    script.main()
    assert files.bundled_names() == ["stereonet_aa"]
    facts = files.facts("stereonet_aa")
    assert (facts["hours"], facts["recipe_digest"], facts["steps"]) == (1.5, "abc, def", "5, 7")
    for scores in facts["scores"].values():
        assert set(scores) == set(script.SETS)
        assert all(value >= 0 for metrics in scores.values() for value in metrics.values())
    # The same image twice has no disparity anywhere: SGBM finds that, and is off by all of the truth.
    assert facts["scores"]["sgbm"]["motorcycle"]["epe"] == pytest.approx((50 * 4 + 46 * 8) / 96, abs=0.5)
    # Every image here is narrow, so it is matched enlarged unless that is turned off.
    bundled = checkpoint.read(files.bundled_file("stereonet_aa"))
    for name, parameter in bundled.network().named_parameters():
        torch.testing.assert_close(parameter.detach(), 1.25 * first[name], rtol=1e-3, atol=1e-4)  # the mean
    assert bundled.hints == InferenceHints(upscale_to=200, sharpen_edges=True, fill_border=True)
    assert facts["scores"]["stereonet_aa"] != facts["scores"][script.ALONE]
    card = files.card_file("stereonet_aa").read_text(encoding="utf-8")
    words = " ".join(card.split())
    for fact in ("200 pixels", "upscaled", "sharpened", "1.5 hours", "averaged", "`abc, def`"):
        assert fact in words
    assert max(len(line) for line in card.splitlines() if not line.startswith("|")) <= 110
    assert card.count("| KITTI 2015") == len(facts["scores"]["stereonet_aa"]["kitti2015"])


def test_a_missing_folder_of_pairs_leaves_the_bundled_file_as_it_is(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = save_run(tmp_path / "run", build_small("aanet"), "abc", 1)
    folders = [f"--middlebury={tmp_path}", f"--kitti={tmp_path / 'missing'}"]
    monkeypatch.setattr(sys, "argv", ["bundle_weights.py", str(run), "--hours=1", *folders])
    with pytest.raises(SystemExit) as raised:
        script.main()
    assert raised.value.code == 2
    assert "there is no folder" in capsys.readouterr().err
    assert not (tmp_path / "weights").exists()
