"""A result must come back from disk as it was, and say plainly what it lacks."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from aanet.errors import InputError
from aanet.geometry.calibration import load_calibration
from aanet.geometry.camera import StereoCamera
from aanet.io.depth import read_depth
from aanet.io.disparity import read_disparity
from aanet.io.images import decode_image, read_image
from aanet.io.points import read_ply
from aanet.outputs import OUTPUTS, find, spellings
from aanet.result import StereoResult
from aanet.viz import colorize_depth, colorize_disparity

CAMERA = StereoCamera(fx=100, cx=19.5, cy=14.5, baseline_m=0.2, width=40, height=30)


@pytest.fixture
def result() -> StereoResult:
    rng = np.random.default_rng(0)
    return StereoResult(
        disparity=(rng.integers(256, 5000, (30, 40)) / 256).astype(np.float32),
        confidence=rng.random((30, 40), np.float32),
        left=rng.integers(0, 256, (30, 40, 3), np.uint8),
        right=rng.integers(0, 256, (30, 40, 3), np.uint8),
        right_disparity=(rng.integers(256, 5000, (30, 40)) / 256).astype(np.float32),
        occlusion=rng.random((30, 40)) < 0.1,
        camera=CAMERA,
        model="aanet",
    )


def outputs_that_need(what):
    return [name for name, output in OUTPUTS.items() if output.needs == what]


def test_depth_and_points_are_those_of_the_camera(result):
    np.testing.assert_allclose(result.depth(), 100 * 0.2 / result.disparity, rtol=1e-6)
    other = StereoCamera(fx=200, cx=0, cy=0, baseline_m=0.2)
    np.testing.assert_allclose(result.depth(other), 2 * result.depth(), rtol=1e-6)
    points = result.points()
    np.testing.assert_allclose(points[..., 2], result.depth(), rtol=1e-6)
    np.testing.assert_allclose(points[3, 7, 0], (7 - 19.5) / 100 * result.depth()[3, 7], rtol=1e-5)


def test_without_a_camera_there_are_no_meters(result, tmp_path):
    result.camera = None
    with pytest.raises(InputError, match="Depth needs a calibration; give calibration="):
        result.depth()
    for output in outputs_that_need("camera"):
        with pytest.raises(InputError, match="needs a calibration"):
            result.save(tmp_path, output)


def test_without_the_check_there_is_no_occlusion(result, tmp_path):
    result.occlusion = result.right_disparity = None
    for output in outputs_that_need("check"):
        with pytest.raises(InputError, match="needs the left-right check"):
            result.save(tmp_path, output)


def test_everything_that_can_be_saved_is_written_under_its_name(result, tmp_path):
    files = result.save(tmp_path / "new" / "folder", *OUTPUTS)
    assert [file.name for file in files] == [find(output).file_name for output in OUTPUTS]
    assert all(file.stat().st_size > 0 for file in files)
    named = result.save(tmp_path, "color", "ply", name="scene/left")
    assert named == [tmp_path / "scene" / "left_color.png", tmp_path / "scene" / "left_points.ply"]
    assert [file.name for file in result.save(tmp_path / "plain")] == ["disparity.png", "color.png"]


@pytest.mark.parametrize("suffix", [each.suffix for each in OUTPUTS["disparity"].types])
def test_disparities_are_read_back_as_they_were(result, tmp_path, suffix):
    files = result.save(tmp_path, f"disparity{suffix}", f"right_disparity{suffix}")
    np.testing.assert_array_equal(read_disparity(files[0]), result.disparity)
    np.testing.assert_array_equal(read_disparity(files[1]), result.right_disparity)


def test_the_other_parts_are_read_back_as_they_were(result, tmp_path):
    names = ("depth.npy", "depth", "confidence.npy", "confidence", "occlusion", "ply")
    depth, millimeters, sure, confidence, hidden, cloud = result.save(tmp_path, *names, flying_pixels=True)
    np.testing.assert_array_equal(read_depth(depth), result.depth())
    np.testing.assert_allclose(read_depth(millimeters), result.depth(), atol=5.1e-4)
    np.testing.assert_array_equal(np.load(sure), result.confidence)
    np.testing.assert_allclose(read_image(confidence) / 255, result.confidence, atol=0.5 / 255 + 1e-6)
    np.testing.assert_array_equal(read_image(hidden) == 255, result.occlusion)
    points, colors = read_ply(cloud)
    np.testing.assert_array_equal(points, result.points().reshape(-1, 3))
    np.testing.assert_array_equal(colors, result.left.reshape(-1, 3))


def test_the_rectified_pair_and_its_camera_are_read_back_as_they_were(result, tmp_path):
    left, right, camera = result.save(tmp_path, "left", "right", "camera")
    np.testing.assert_array_equal(read_image(left), result.left)
    np.testing.assert_array_equal(read_image(right), result.right)
    assert load_calibration(camera).camera == CAMERA
    result.right = None
    with pytest.raises(InputError, match="made without its right image"):
        result.save(tmp_path, "right")


def test_pictures_are_as_large_as_the_image_or_larger(result, tmp_path):
    color, panel = result.save(tmp_path, "color.jpg", "panel")
    assert cv2.imread(str(color)).shape[0] == 30
    assert cv2.imread(str(panel)).shape[0] > 60  # four pictures in two rows


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("disparitys", "no output 'disparitys' .*'disparity'"),
        ("disparity.tiff", r"disparity can be saved as \.png, \.pfm, \.npy, \.npz"),
        ("ply.obj", r"ply can be saved as \.ply"),
    ],
)
def test_unknown_outputs_are_named(result, tmp_path, output, message):
    with pytest.raises(InputError, match=message):
        result.save(tmp_path, output)
    assert list(tmp_path.iterdir()) == []


def titles_of(figure):
    return [axes.get_title() for axes in figure.axes if axes.get_title()]


def test_a_figure_shows_image_disparity_depth_and_confidence(result):
    figure = result.plot()
    assert titles_of(figure) == ["Left image", "Disparity (aanet)", "Depth", "Confidence"]
    np.testing.assert_array_equal(figure.axes[1].images[0].get_array(), result.disparity)
    np.testing.assert_array_equal(figure.axes[2].images[0].get_array(), result.depth())
    assert titles_of(result.plot("depth", "occlusion")) == ["Depth", "Occlusion"]
    (bar,) = (axes for axes in figure.axes if axes.get_ylabel() == "meters")
    labels = [label.get_text() for label in bar.get_yticklabels()]
    assert labels == [f"{float(label):g}" for label in labels]  # plain numbers, not powers of ten
    assert len(labels) > 1
    result.camera = None
    assert titles_of(result.plot()) == ["Left image", "Disparity (aanet)", "Confidence"]
    with pytest.raises(InputError, match="cannot plot 'depth'; it has left, disparity, conf"):
        result.plot("depth")


def test_a_notebook_shows_a_result_and_its_figure(result):
    assert decode_image(result._repr_png_(), "the result").shape[0] == 30
    assert decode_image(result.plot("left")._repr_png_(), "the figure").shape[:2] == (400, 500)


def test_a_result_is_one_line(result):
    result.disparity[:] = 10
    result.disparity[0, 0], result.disparity[0, 1] = 2.5, 40
    result.confidence[:] = 0.9
    result.warnings = ["Both images are the same."]
    assert repr(result) == (
        "StereoResult(40×30, disparity 2.5–40 px, depth 0.5–8 m, confidence 0.90, aanet, 1 warning)"
    )
    result.camera, result.warnings = None, []
    assert repr(result) == "StereoResult(40×30, disparity 2.5–40 px, confidence 0.90, aanet, no warnings)"
    result.disparity[:] = np.nan
    assert repr(result) == "StereoResult(40×30, confidence 0.90, aanet, no warnings)"


def test_a_cloud_holds_what_is_near_and_certain(result):
    result.disparity[0, 0] = np.nan
    points, colors = result.cloud(flying_pixels=True)
    assert points.shape == colors.shape == (30 * 40 - 1, 3)
    depth, sure = result.depth(), result.confidence
    limit = float(np.nanmedian(depth))
    keep = np.isfinite(depth) & (depth <= limit) & (sure >= 0.5) & ~result.occlusion
    limits = {"min_confidence": 0.5, "max_depth": limit, "flying_pixels": True}
    points, colors = result.cloud(**limits, visible_only=True)
    np.testing.assert_array_equal(points, result.points()[keep])
    np.testing.assert_array_equal(colors, result.left[keep])
    result.occlusion = None
    with pytest.raises(InputError, match="left-right check"):
        result.cloud(visible_only=True)


def test_saved_depth_and_points_omit_what_is_far_or_uncertain(result, tmp_path):
    limit = float(np.nanmedian(result.depth()))
    options = {"min_confidence": 0.5, "max_depth": limit}
    depth, cloud = result.save(tmp_path, "depth.npy", "ply", **options)
    keep = (result.confidence >= 0.5) & (result.depth() <= limit)
    np.testing.assert_array_equal(read_depth(depth), np.where(keep, result.depth(), np.nan))
    np.testing.assert_array_equal(result.depth(**options), read_depth(depth))
    points, colors = result.cloud(**options)
    np.testing.assert_array_equal(read_ply(cloud)[0], points)
    np.testing.assert_array_equal(read_ply(cloud)[1], colors)
    assert 0 < len(points) < keep.sum()  # without the flying pixels


def test_a_range_fixes_the_colors_of_disparity_and_depth(result, tmp_path):
    def picture(output, **options):
        return read_image(result.save(tmp_path, output, **options)[0])[:, :40]

    np.testing.assert_array_equal(
        picture("color", range=(4, 12)), colorize_disparity(result.disparity, 4, 12)
    )
    np.testing.assert_array_equal(picture("depth_color", range="2:5m"), colorize_depth(result.depth(), 2, 5))
    # fx · baseline is 20: the same scale in the other unit.
    np.testing.assert_array_equal(picture("color", range="2:5m"), picture("color", range=(4, 10)))
    np.testing.assert_array_equal(picture("depth_color", range="2:5m"), picture("depth_color", range="4:10"))
    far = picture("depth_color", range="0:10")  # infinity cannot be on a logarithmic scale
    np.testing.assert_array_equal(far, colorize_depth(result.depth(), 2, 20))
    panels = [read_image(result.save(tmp_path, "panel", range=text)[0]) for text in ("4:12", "2:30")]
    assert (panels[0] != panels[1]).any()
    result.camera = None
    with pytest.raises(InputError, match="colors in meters needs a calibration"):
        result.save(tmp_path, "color", range="2:5m")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_confidence": 2}, "min_confidence must be from 0 to 1; got 2"),
        ({"max_depth": 0}, "max_depth must be above 0 meters"),
        ({"flying_pixels": "yes"}, "flying_pixels must be True or False"),
        ({"range": "5"}, "LOW:HIGH in pixels, such as 5:80, or in meters, such as 0.5:10m; got 5"),
        ({"range": (5, 5)}, "LOW:HIGH"),
        ({"range": "0:5m"}, "LOW:HIGH"),
        ({"range": 7}, "LOW:HIGH"),
        ({"confidence": 0.5}, r"no option 'confidence' \(did you mean 'min_confidence'\?\)"),
    ],
)
def test_wrong_options_of_saving_are_one_sentence(result, tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        result.save(tmp_path, "color", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_ends_like_a_file_is_that_file(result, tmp_path):
    scene = tmp_path / "new" / "scene.ply"
    assert result.save(scene, flying_pixels=True) == [scene]
    np.testing.assert_array_equal(read_ply(tmp_path / "new/scene.ply")[0], result.points().reshape(-1, 3))
    result.save(tmp_path / "d.pfm")
    np.testing.assert_array_equal(read_disparity(tmp_path / "d.pfm"), result.disparity)
    result.save(tmp_path / "z.npy", "depth")
    np.testing.assert_array_equal(read_depth(tmp_path / "z.npy"), result.depth())
    with pytest.raises(InputError, match="is the name of one file; got 2 outputs"):
        result.save(tmp_path / "a.png", "color", "depth")
    with pytest.raises(InputError, match=r"occlusion can be saved as \.png"):
        result.save(tmp_path / "a.npy", "occlusion")
    assert result.save(tmp_path / "run.2026", "color") == [tmp_path / "run.2026" / "color.png"]


def test_outputs_are_refused_before_any_of_them_is_written(result, tmp_path):
    result.camera = None
    with pytest.raises(InputError, match="needs a calibration"):
        result.save(tmp_path, "color", "depth")
    with pytest.raises(InputError, match=r"separate strings, such as 'color'; got \['color'\]"):
        result.save(tmp_path, ["color"])
    assert list(tmp_path.iterdir()) == []


def test_every_spelling_of_an_output_is_found():
    assert {"disparity", "disparity.png", "disparity.pfm", "ply.ply"} <= set(spellings())
    assert [find(spelling).type.suffix for spelling in ("depth", "depth.npy")] == [".png", ".npy"]
    assert all(find(spelling) for spelling in spellings())


def test_the_camera_of_another_size_is_refused(result):
    with pytest.raises(InputError, match="for images of 80×60 pixels"):
        result.depth(CAMERA.resized(80, 60))
