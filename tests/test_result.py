"""A result must come back from disk as it was, and say plainly what it lacks."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from aanet.errors import AanetError
from aanet.geometry.camera import StereoCamera
from aanet.io.disparity import read_depth, read_disparity
from aanet.io.images import read_image
from aanet.io.points import read_ply
from aanet.result import NEEDS_CAMERA, NEEDS_CHECK, OUTPUTS, StereoResult, file_name

CAMERA = StereoCamera(fx=100, cx=19.5, cy=14.5, baseline_m=0.2, width=40, height=30)


@pytest.fixture
def result() -> StereoResult:
    rng = np.random.default_rng(0)
    return StereoResult(
        disparity=(rng.integers(256, 5000, (30, 40)) / 256).astype(np.float32),
        confidence=rng.random((30, 40), np.float32),
        left=rng.integers(0, 256, (30, 40, 3), np.uint8),
        right_disparity=(rng.integers(256, 5000, (30, 40)) / 256).astype(np.float32),
        occlusion=rng.random((30, 40)) < 0.1,
        camera=CAMERA,
        model="aanet",
    )


def test_depth_and_points_are_those_of_the_camera(result):
    np.testing.assert_allclose(result.depth(), 100 * 0.2 / result.disparity, rtol=1e-6)
    other = StereoCamera(fx=200, cx=0, cy=0, baseline_m=0.2)
    np.testing.assert_allclose(result.depth(other), 2 * result.depth(), rtol=1e-6)
    points = result.points()
    np.testing.assert_allclose(points[..., 2], result.depth(), rtol=1e-6)
    np.testing.assert_allclose(points[3, 7, 0], (7 - 19.5) / 100 * result.depth()[3, 7], rtol=1e-5)


def test_without_a_camera_there_are_no_meters(result, tmp_path):
    result.camera = None
    with pytest.raises(AanetError, match="Depth needs a camera"):
        result.depth()
    for output in sorted(NEEDS_CAMERA):
        with pytest.raises(AanetError, match="needs a camera"):
            result.save(tmp_path, output)


def test_without_the_check_there_is_no_occlusion(result, tmp_path):
    result.occlusion = result.right_disparity = None
    for output in sorted(NEEDS_CHECK):
        with pytest.raises(AanetError, match="needs the left-right check"):
            result.save(tmp_path, output)


def test_everything_that_can_be_saved_is_written_under_its_name(result, tmp_path):
    files = result.save(tmp_path / "new" / "folder", *OUTPUTS)
    assert [file.name for file in files] == [file_name(output) for output in OUTPUTS]
    assert all(file.stat().st_size > 0 for file in files)
    named = result.save(tmp_path, "color", "ply", name="scene/left")
    assert named == [tmp_path / "scene" / "left_color.png", tmp_path / "scene" / "left_points.ply"]
    assert [file.name for file in result.save(tmp_path / "plain")] == ["disparity.png", "color.png"]


@pytest.mark.parametrize("suffix", OUTPUTS["disparity"])
def test_disparities_are_read_back_as_they_were(result, tmp_path, suffix):
    files = result.save(tmp_path, f"disparity{suffix}", f"right_disparity{suffix}")
    np.testing.assert_array_equal(read_disparity(files[0]), result.disparity)
    np.testing.assert_array_equal(read_disparity(files[1]), result.right_disparity)


def test_the_other_parts_are_read_back_as_they_were(result, tmp_path):
    depth, millimeters, sure, confidence, hidden, cloud = result.save(
        tmp_path, "depth.npy", "depth", "confidence.npy", "confidence", "occlusion", "ply"
    )
    np.testing.assert_array_equal(read_depth(depth), result.depth())
    np.testing.assert_allclose(read_depth(millimeters), result.depth(), atol=5.1e-4)
    np.testing.assert_array_equal(np.load(sure), result.confidence)
    np.testing.assert_allclose(read_image(confidence) / 255, result.confidence, atol=0.5 / 255 + 1e-6)
    np.testing.assert_array_equal(read_image(hidden) == 255, result.occlusion)
    points, colors = read_ply(cloud)
    np.testing.assert_array_equal(points, result.points().reshape(-1, 3))
    np.testing.assert_array_equal(colors, result.left.reshape(-1, 3))


def test_pictures_are_as_large_as_the_image_or_larger(result, tmp_path):
    color, panel = result.save(tmp_path, "color.jpg", "panel")
    assert cv2.imread(str(color)).shape[0] == 30
    assert cv2.imread(str(panel)).shape[0] > 60  # four pictures in two rows


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("disparitys", "nothing called 'disparitys' to save"),
        ("disparity.tiff", r"disparity is saved as \.png, \.pfm, \.npy, \.npz"),
        ("ply.obj", r"ply is saved as \.ply"),
    ],
)
def test_unknown_outputs_are_named(result, tmp_path, output, message):
    with pytest.raises(AanetError, match=message):
        result.save(tmp_path, output)
    assert list(tmp_path.iterdir()) == []


def test_a_figure_shows_image_disparity_and_confidence(result):
    figure = result.plot()
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles == ["Left image", "Disparity (aanet)", "Confidence"]
    np.testing.assert_array_equal(figure.axes[1].images[0].get_array(), result.disparity)


def test_the_camera_of_another_size_is_refused(result):
    with pytest.raises(AanetError, match="for images of 80×60 pixels"):
        result.depth(CAMERA.resized(80, 60))
