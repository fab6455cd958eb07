"""The measurement of sampling points: against a loop, the regular window, and the claims of the paper."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from aanet.cli.main import app
from aanet.data.motorcycle import motorcycle
from aanet.data.sample import StereoSample
from aanet.errors import InputError
from aanet.evaluation.regions import near_edges, textureless
from aanet.evaluation.sampling_points import adaptive_layers, record_fields
from aanet.evaluation.sampling_study import study_sampling
from aanet.models.weights import checkpoint, files
from helpers.layouts import middlebury2006
from helpers.small_networks import build_small


def two_surfaces() -> StereoSample:
    rng = np.random.default_rng(0)
    left = rng.integers(0, 256, (72, 144, 3), np.uint8)
    left[10:30, 10:40] = 90
    disparity = np.full((72, 144), 5, np.float32)
    disparity[20:50, 60:100] = 20
    valid = np.ones((72, 144), bool)
    valid[:, :4] = False
    return StereoSample("two surfaces", left, np.roll(left, -5, axis=1), np.where(valid, disparity, 0), valid)


def test_an_untrained_network_samples_the_regular_window() -> None:
    measured = study_sampling(build_small("aanet", 48), [two_surfaces()]).as_dict()
    for region in ("edges", "textureless", "textured"):
        assert measured["adaptive"][region] == pytest.approx(measured["regular"][region])
        assert measured["widened"][region] == pytest.approx(measured["regular"][region])
    # Nine points at 0 and ±6 pixels: two thirds of the squared distance in each direction.
    assert measured["regular"]["textureless"]["distance"] == pytest.approx(np.sqrt(48), rel=1e-3)
    assert measured["regular"]["textureless"]["on_surface"] == pytest.approx(100)
    edges = measured["regular"]["edges"]["on_surface"]
    assert edges is not None
    assert 50 < edges < 95


def test_the_shares_agree_with_a_loop_over_points() -> None:
    sample = two_surfaces()
    assert sample.disparity is not None
    assert sample.valid is not None
    network = build_small("stereonet_aa", 48)
    generator = torch.Generator().manual_seed(0)
    for layer in adaptive_layers(network):
        bias = layer.offset_predictor.bias
        assert bias is not None
        with torch.no_grad():
            bias.copy_(2 * torch.randn(bias.shape, generator=generator))
    fields = record_fields(network, sample.left, sample.right)
    edges = near_edges(sample.disparity, sample.valid)
    shares, distances = [], []
    for layer in fields.layers:
        points, rows, columns = layer.x.shape
        for row in range(rows):
            for column in range(columns):
                x, y = ((np.array((column, row)) + 0.5) * fields.step - 0.5 - fields.shift).tolist()
                cx, cy = round(x), round(y)
                if not (0 <= cx < 144 and 0 <= cy < 72 and sample.valid[cy, cx] and edges[cy, cx]):
                    continue
                on, total, squared = 0.0, 0.0, 0.0
                for point in range(points):
                    px = (float(layer.x[point, row, column]) + 0.5) * fields.step - 0.5 - fields.shift[0]
                    py = (float(layer.y[point, row, column]) + 0.5) * fields.step - 0.5 - fields.shift[1]
                    qx, qy = round(px), round(py)
                    if not (0 <= qx < 144 and 0 <= qy < 72 and sample.valid[qy, qx]):
                        continue
                    weight = float(layer.weight[point, row, column])
                    total += weight
                    squared += weight * ((px - x) ** 2 + (py - y) ** 2)
                    on += weight * (abs(sample.disparity[qy, qx] - sample.disparity[cy, cx]) <= 2)
                shares.append(on / total)
                distances.append(np.sqrt(squared / total))
    measured = study_sampling(network, [sample]).as_dict()["adaptive"]["edges"]
    assert measured["on_surface"] == pytest.approx(100 * np.mean(shares), rel=1e-4)
    assert measured["distance"] == pytest.approx(np.mean(distances), rel=1e-4)


def test_the_widened_window_reaches_as_far_as_the_adaptive_points() -> None:
    network = build_small("aanet", 48)
    for layer in adaptive_layers(network):
        bias = layer.offset_predictor.bias
        assert bias is not None
        with torch.no_grad():
            bias[1:36:2] = 1.5  # every point, 4.5 pixels to the right: √(48 + 4.5²)
    measured = study_sampling(network, [two_surfaces()]).as_dict()
    widened = measured["widened"]["textureless"]["distance"]
    assert widened == pytest.approx(np.sqrt(48 + 4.5**2), rel=0.02)
    assert widened == pytest.approx(measured["adaptive"]["textureless"]["distance"], rel=0.02)


def test_regions_are_disjoint_and_one_without_pixels_is_none() -> None:
    sample = two_surfaces()
    flat = StereoSample("flat", sample.left, sample.right, np.full((72, 144), 5, np.float32), sample.valid)
    measured = study_sampling(build_small("aanet", 48), [flat]).as_dict()
    assert measured["adaptive"]["edges"] == {"on_surface": None, "distance": None}
    assert textureless(flat.left).any()


def test_a_pair_without_ground_truth_is_refused() -> None:
    sample = two_surfaces()
    with pytest.raises(InputError, match="two surfaces has no ground truth"):
        study_sampling(build_small("aanet", 48), [StereoSample("two surfaces", sample.left, sample.right)])


@pytest.mark.slow
def test_trained_points_stay_on_their_surface_at_edges() -> None:
    # The claim of the paper's figure, for the bundled weights on a real pair.
    network = checkpoint.read(files.bundled_file("aanet")).network(training_heads=False)
    measured = study_sampling(network.eval(), [motorcycle()]).as_dict()
    trained, regular = (measured[kind]["edges"]["on_surface"] for kind in ("adaptive", "widened"))
    assert trained is not None
    assert regular is not None
    assert trained > regular + 5  # of windows that reach as far


def test_the_command_prints_a_table_and_json(tmp_path: Path) -> None:
    root = middlebury2006(tmp_path / "data")
    checkpoint.save(build_small("stereonet_aa", 48), tmp_path / "untrained.safetensors")
    words = [
        "study",
        "sampling",
        "middlebury2006",
        str(root),
        "--model",
        str(tmp_path / "untrained.safetensors"),
    ]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0, shown.output
    assert "textureless" in shown.output
    values = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    adaptive, regular = (values[kind]["textured"]["distance"] for kind in ("adaptive", "regular"))
    assert adaptive == pytest.approx(regular)
