"""Real pairs, where they are present: engines agree, and a real scene is matched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from skimage.data import stereo_motorcycle

from aanet.io.disparity import read_disparity
from aanet.io.images import read_image
from aanet.matcher import StereoMatcher
from helpers.matching_network import matching_network
from helpers.small_networks import build_small


def cones(real_data: Path) -> tuple[np.ndarray, np.ndarray]:
    folder = real_data / "middlebury" / "2003-cones"
    return read_image(folder / "im0.png")[100:220, 60:330], read_image(folder / "im1.png")[100:220, 60:330]


@pytest.mark.slow
@pytest.mark.parametrize("matches", [True, False])
def test_engines_agree_on_a_real_pair(real_data, matches):
    network = matching_network(48) if matches else build_small("aanet", 48)
    left, right = cones(real_data)
    reference = StereoMatcher(network, engine="torch", device="cpu")(left, right)
    result = StereoMatcher(network, engine="openvino")(left, right)
    assert reference.disparity.std() > 0.01
    assert np.abs(result.disparity - reference.disparity).max() < 1e-3
    assert np.abs(result.confidence - reference.confidence).max() < 1e-3


def test_sgbm_matches_the_motorcycle():
    left, right, truth = stereo_motorcycle()
    result = StereoMatcher("sgbm", max_disparity=96)(left, right, check=True)
    known = np.isfinite(truth) & (truth > 0)
    assert result.warnings == []
    error = np.abs(result.disparity - truth)
    assert error[known].mean() < 1.5
    assert result.occlusion is not None
    assert error[known & result.occlusion].mean() > 2 * error[known & ~result.occlusion].mean()
    surest = result.confidence > np.median(result.confidence)
    assert error[known & surest].mean() < error[known & ~surest].mean()


def test_tiles_of_a_real_pair_are_what_the_whole_is(real_data):
    folder = real_data / "middlebury" / "2006-aloe"
    pair, truth = (folder / "im0.png", folder / "im1.png"), read_disparity(folder / "disp0.png")
    matcher = StereoMatcher("sgbm", max_disparity=96)
    whole, tiled = matcher(*pair, tile=None), matcher(*pair, tile=(300, 400))
    known = np.isfinite(truth)
    errors = [np.abs(result.disparity - truth)[known].mean() for result in (whole, tiled)]
    assert errors[1] < errors[0] + 0.1
