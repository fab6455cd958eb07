"""Sampling points: where an untrained layer looks, where a moved one does, and what cannot be shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from aanet.cli.main import app
from aanet.errors import AanetError
from aanet.evaluation.sampling_points import adaptive_layers, draw_points, example_pixels, sampling_points
from aanet.io.images import read_image, write_image
from aanet.models.weights import checkpoint
from helpers.small_networks import build_small

SIZE = (72, 144)


def pair(height: int = SIZE[0], width: int = SIZE[1]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    left = rng.integers(0, 256, (height, width, 3), np.uint8)
    return left, np.roll(left, -3, axis=1)


def grid_around(x: float, y: float, distance: float) -> set[tuple[float, float]]:
    return {(x + dx, y + dy) for dx in (-distance, 0, distance) for dy in (-distance, 0, distance)}


def rounded(points: np.ndarray) -> set[tuple[float, float]]:
    return {(round(float(x), 3), round(float(y), 3)) for x, y in points}


def test_an_untrained_layer_reads_a_plain_dilated_window() -> None:
    network = build_small("aanet", 48)
    (found,) = sampling_points(network, *pair(), [(70, 34)])  # 70 = the middle of a cell of 3×3 pixels
    assert rounded(found.points) == grid_around(70, 34, 6)  # dilation 2 on a grid of every third pixel
    np.testing.assert_allclose(found.weights, 1)
    assert len(found.points) == 18  # nine for each of two groups


def test_padding_does_not_move_the_points() -> None:
    network = build_small("aanet", 48)
    (found,) = sampling_points(network, *pair(70, 139), [(70, 34)])
    middle = found.points.mean(axis=0)
    assert np.abs(middle - (70, 34)).max() <= 1.5  # to the nearest pixel of the grid


def test_offsets_weights_and_earlier_layers_are_followed() -> None:
    network = build_small("aanet", 48)
    last, before = adaptive_layers(network)[-1], adaptive_layers(network)[-2]
    for layer, move in ((last, 1.0), (before, 2.0)):
        bias = layer.offset_predictor.bias
        assert bias is not None
        with torch.no_grad():
            bias[1:36:2] = move  # x of all points of both groups
            bias[36:] = 0.0 if layer is before else float(np.log(3))  # m_k = 1, and 1.5
    (one,) = sampling_points(network, *pair(), [(70, 34)])
    assert rounded(one.points) == grid_around(73, 34, 6)
    np.testing.assert_allclose(one.weights, 1.5, rtol=1e-5)
    (two,) = sampling_points(network, *pair(), [(70, 34)], levels=2)
    expected = {at for x, y in grid_around(73, 34, 6) for at in grid_around(x + 6, y, 6)}
    assert rounded(two.points) == expected
    assert len(two.points) == 18**2


def test_points_beyond_the_image_are_not_read() -> None:
    (found,) = sampling_points(build_small("aanet", 48), *pair(), [(1, 1)])
    assert rounded(found.points) == {(1, 1), (7, 1), (1, 7), (7, 7)}


@pytest.mark.parametrize("name", ["gcnet", "aanet_no_isa"])
def test_a_network_without_adaptive_points_is_named(name: str) -> None:
    with pytest.raises(AanetError, match=f"{name} has no sampling points"):
        adaptive_layers(build_small(name, 96))


def test_wrong_pixels_and_levels_are_one_sentence() -> None:
    network = build_small("stereonet_aa", 48)
    with pytest.raises(AanetError, match="144,0 is outside the image"):
        sampling_points(network, *pair(), [(144, 0)])
    with pytest.raises(AanetError, match="must be 1 to 4"):
        sampling_points(network, *pair(), [(1, 1)], levels=5)


def test_the_pixels_shown_are_beside_an_edge_and_in_a_plain_area() -> None:
    rng = np.random.default_rng(0)
    left = rng.integers(0, 256, (100, 200, 3), np.uint8)
    left[30:70, 120:180] = 90
    disparity = np.full((100, 200), 5, np.float32)
    disparity[20:80, 40:90] = 30
    (edge_x, edge_y), (plain_x, plain_y) = example_pixels(left, disparity)
    assert 80 <= edge_x < 90
    assert 20 <= edge_y < 80
    assert (135 <= plain_x <= 165, 45 <= plain_y <= 55) == (True, True)


def test_the_command_writes_the_picture(tmp_path: Path) -> None:
    for side, image in zip(("left", "right"), pair(), strict=True):
        write_image(tmp_path / f"{side}.png", image)
    files = [str(tmp_path / "left.png"), str(tmp_path / "right.png")]
    target = tmp_path / "points.png"
    checkpoint.save(build_small("stereonet_aa", 48), tmp_path / "untrained.safetensors")
    common = ["--model", str(tmp_path / "untrained.safetensors"), "-o", str(target)]
    result = CliRunner().invoke(app, ["figure", *files, *common, "--at", "70,34", "--at", "20,30"])
    assert result.exit_code == 0, result.output
    assert "70,34: 18 points, the farthest" in result.stdout
    red = (read_image(target).astype(int) - (230, 25, 25)).__abs__().sum(axis=2) < 60
    assert red.sum() > 20
    wrong = CliRunner().invoke(app, ["figure", *files, *common, "--overwrite", "--at", "left"])
    assert isinstance(wrong.exception, AanetError)
    assert "X,Y" in str(wrong.exception)


def test_the_pixel_is_green_and_the_points_red() -> None:
    (found,) = sampling_points(build_small("aanet", 48), *pair(), [(70, 34)])
    canvas = draw_points(np.full((*SIZE, 3), 128, np.uint8), found)
    assert tuple(canvas[34, 70]) == (30, 220, 60)
    assert tuple(canvas[28, 64]) == (230, 25, 25)
