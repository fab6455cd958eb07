from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from aanet.inference.pair_checks import check_pair, measure_alignment
from aanet.io.images import as_rgb8, read_image

Pair = tuple[np.ndarray, np.ndarray]


def _moved(image: np.ndarray, dy: float = 0.0, degrees: float = 0.0) -> np.ndarray:
    """The image lowered by `dy` and turned clockwise."""
    height, width = image.shape[:2]
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), -degrees, 1)
    matrix[1, 2] += dy
    return cv2.warpAffine(image, matrix, (width, height), borderMode=cv2.BORDER_REFLECT)


@pytest.fixture(scope="module")
def pair() -> Pair:
    """Random blobs on three planes, 8, 15 and 30 px apart."""
    rng = np.random.default_rng(11)
    layers = [
        cv2.GaussianBlur(rng.integers(0, 256, (300, 500, 3), dtype=np.uint8), (0, 0), 2) for _ in range(3)
    ]
    layers = [cv2.normalize(layer, None, 0, 255, cv2.NORM_MINMAX) for layer in layers]
    left, right = (np.zeros((300, 440, 3), np.uint8) for _ in range(2))
    for layer, disparity, rows in zip(layers, (8, 15, 30), (0, 100, 200), strict=True):
        left[rows : rows + 100] = layer[rows : rows + 100, :440]
        right[rows : rows + 100] = layer[rows : rows + 100, disparity : disparity + 440]
    return left, right


def _codes(left: np.ndarray, right: np.ndarray) -> list[str]:
    return [finding.code for finding in check_pair(left, right)]


def test_a_good_pair_has_no_findings(pair: Pair) -> None:
    assert check_pair(*pair) == []


@pytest.mark.parametrize("dy", [-30.0, -2.0, 2.0, 5.5])
def test_the_vertical_offset_is_measured(pair: Pair, dy: float) -> None:
    left, right = pair
    (finding,) = check_pair(left, _moved(right, dy))
    assert finding.code == "not_rectified"
    way = "lower" if dy > 0 else "higher"
    measured = float(finding.message.split(" px ")[0].split()[-1])
    assert measured == pytest.approx(abs(dy), abs=0.2)
    assert f"px {way} in the right image" in finding.message


def test_the_rotation_is_measured(pair: Pair) -> None:
    left, right = (cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in (pair[0], _moved(pair[1], 0, 1.5)))
    alignment = measure_alignment(left, right)
    assert alignment is not None
    assert alignment.rotation == pytest.approx(1.5, abs=0.1)
    assert _codes(pair[0], _moved(pair[1], 0, 1.5)) == ["not_rectified"]


def test_large_images_are_measured_in_their_own_pixels(pair: Pair) -> None:
    left, right = (
        cv2.cvtColor(cv2.resize(image, None, fx=5, fy=5), cv2.COLOR_RGB2GRAY)
        for image in (pair[0], _moved(pair[1], 3))
    )
    alignment = measure_alignment(left, right)
    assert alignment is not None
    assert alignment.offset == pytest.approx(15, abs=0.5)


@pytest.mark.parametrize(
    ("code", "severity", "change", "words"),
    [
        ("swapped", "warning", lambda left, right: (right, left), "100% of the matched points"),
        ("identical", "warning", lambda left, _: (left, left.copy()), "differ by 0.00"),
        ("gray", "note", lambda left, right: (left[..., 0], right[..., 0]), "Both images are gray"),
        (
            "alpha",
            "note",
            lambda left, right: (np.dstack([left, left[..., :1]]), right),
            "The left image has an alpha",
        ),
        (
            "sixteen_bit",
            "note",
            lambda left, right: (left, right.astype(np.uint16) * 257),
            "The right image has 16 bits",
        ),
        ("exposure", "warning", lambda left, right: (left, right // 2), "left image is 2.0 times as bright"),
    ],
)
def test_each_finding_has_its_sentence_and_severity(
    pair: Pair, code: str, severity: str, change: Callable[[np.ndarray, np.ndarray], Pair], words: str
) -> None:
    (finding,) = check_pair(*change(*pair))
    assert finding.code == code
    assert finding.severity == severity
    assert words in finding.message
    assert finding.message.endswith(".")


def test_a_bare_wall_has_no_texture() -> None:
    rng = np.random.default_rng(0)
    noise = [(128 + rng.normal(0, 2, (200, 300, 3))).astype(np.uint8) for _ in range(2)]
    assert "no_texture" in _codes(*noise)
    assert not {"not_rectified", "swapped"} & set(_codes(*noise))


def test_different_sizes_are_an_error_and_end_the_checks(pair: Pair) -> None:
    (finding,) = check_pair(pair[0], pair[1][:-1])
    assert (finding.code, finding.severity) == ("different_sizes", "error")
    assert "440×300 pixels, the right one 440×299" in finding.message


@pytest.mark.parametrize("size", [(1, 1), (20, 30)])
def test_tiny_and_unrelated_images_do_not_stop_the_checks(size: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    left, right = (rng.integers(0, 256, (*size, 3), dtype=np.uint8) for _ in range(2))
    assert not {"not_rectified", "swapped"} & set(_codes(left, right))


def test_real_pairs_raise_no_alarm_and_their_faults_do(real_data: Path) -> None:
    """Eight of the fifty pairs on which all of this was measured, the hardest (a dark tunnel) among them."""
    kitti = real_data / "kitti2015/training"
    pairs = [
        (scene / "im0.png", scene / "im1.png") for scene in sorted((real_data / "middlebury").iterdir())[::6]
    ]
    pairs += [
        (kitti / f"image_2/{name}", kitti / f"image_3/{name}") for name in ("000003_10.png", "000104_10.png")
    ]
    for paths in pairs:
        left, right = (as_rgb8(read_image(path)) for path in paths)
        assert check_pair(left, right) == [], paths
        assert _codes(right, left) == ["swapped"], paths
        assert _codes(left, _moved(right, 2.5)) == ["not_rectified"], paths
