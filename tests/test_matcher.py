"""Images of any size and kind in, one kind of result out."""

from __future__ import annotations

import numpy as np
import pytest

from aanet.errors import AanetError, InputError, ReadError, UnsupportedError
from aanet.geometry.camera import StereoCamera
from aanet.geometry.rectification import Calibration, RawCalibration
from aanet.inference.hints import InferenceHints
from aanet.inference.options import MatchOptions
from aanet.inference.padding import padding_for
from aanet.inference.size_rule import SizeRule
from aanet.io.images import write_image
from aanet.matcher import StereoMatcher, occluded
from helpers.fake_engine import FakeEngine
from helpers.matching_network import matching_network, plane, textured_scene


@pytest.fixture(scope="module")
def matcher() -> StereoMatcher:
    return StereoMatcher(matching_network(24), engine="torch")


def test_sgbm_finds_a_plane():
    result = StereoMatcher("sgbm", max_disparity=64)(*plane(120, 240, 17))
    assert result.disparity.shape == (120, 240)
    assert result.disparity.dtype == result.confidence.dtype == np.float32
    assert np.abs(result.disparity[:, 17:] - 17).mean() < 0.05
    assert result.confidence[:, 24:].mean() > 0.9
    assert result.model == "sgbm"
    assert "OpenCV" in result.engine


def test_a_network_finds_a_plane_at_a_size_it_cannot_take(matcher):
    result = matcher(*plane(117, 235, 8))  # not multiples of 4
    assert result.disparity.shape == (117, 235)
    error = np.abs(result.disparity - 8)[:, 24:]
    assert error.mean() < 0.2
    fitting = np.abs(matcher(*plane(116, 232, 8)).disparity - 8)[:, 24:]
    for border in (np.s_[:8], np.s_[-8:], np.s_[:, -8:]):
        assert error[border].mean() < fitting[border].mean() + 0.5  # nor do the padded borders suffer


@pytest.mark.parametrize(
    "convert",
    [
        lambda image: image.astype(np.uint16) * 257,
        lambda image: image / 255,
        lambda image: (image / 255).astype(np.float32),
        lambda image: np.dstack([image, np.full(image.shape[:2], 255, np.uint8)]),
    ],
    ids=["uint16", "float64", "float32", "alpha"],
)
def test_the_kind_of_image_makes_no_difference(matcher, convert):
    left, right = plane(60, 120, 8)
    expected = matcher(left, right, inspect=False)
    result = matcher(convert(left), convert(right), inspect=False)
    np.testing.assert_allclose(result.disparity, expected.disparity, atol=1e-4)
    np.testing.assert_array_equal(result.left, left)


def test_gray_images_are_matched_as_gray_colors(matcher):
    gray = [image[..., 0] for image in plane(60, 120, 8)]
    result = matcher(*gray, inspect=False)
    repeated = matcher(*(np.repeat(image[..., None], 3, 2) for image in gray), inspect=False)
    np.testing.assert_array_equal(result.disparity, repeated.disparity)


def test_paths_and_arrays_give_the_same(matcher, tmp_path):
    left, right = plane(60, 120, 8)
    write_image(tmp_path / "l.png", left)
    write_image(tmp_path / "r.png", right)
    from_files = matcher(tmp_path / "l.png", str(tmp_path / "r.png"), inspect=False)
    np.testing.assert_array_equal(from_files.disparity, matcher(left, right, inspect=False).disparity)


def test_padding_repeats_pixels_around_the_image_and_is_cut_off_again():
    sizes = SizeRule(12, 36)
    padding = padding_for(20, 50, sizes)
    image = np.random.default_rng(0).random((1, 3, 20, 50), np.float32)
    padded = padding.pad(image)
    assert padded.shape == (1, 3, 36, 60)
    np.testing.assert_array_equal(padding.crop(padded), image)
    np.testing.assert_array_equal(padded[0, :, 0, 5:55], image[0, :, 0])
    np.testing.assert_array_equal(padded[0, :, 8:28, -1], image[0, :, :, -1])
    assert padding_for(36, 60, sizes) == (0, 0, 0, 0)


def test_at_another_scale_values_and_size_are_those_of_the_image():
    engine = FakeEngine(sizes=SizeRule(12))
    result = engine.matcher(*plane(100, 200, 8), scale=0.5, inspect=False)
    assert engine.shapes == [(1, 3, 60, 108)]  # 50×100, padded
    assert result.disparity.shape == (100, 200)
    np.testing.assert_allclose(result.disparity, 10.0)  # 5 px at half the size
    # A smooth image comes back in its place: the confidence of the fake is the image itself.
    ramp = np.repeat(np.linspace(0, 1, 200, dtype=np.float32)[None], 100, 0)
    result = engine.matcher(ramp, ramp, scale=0.5, inspect=False)
    np.testing.assert_allclose(result.confidence[:, 2:-2], ramp[:, 2:-2], atol=2e-3)


def test_small_images_are_upscaled_where_the_weights_recommend_it():
    engine = FakeEngine(sizes=SizeRule(12), hints=InferenceHints(upscale_to=288))
    result = engine.matcher(*plane(96, 192, 8), inspect=False)
    assert engine.shapes == [(1, 3, 144, 288)]
    np.testing.assert_allclose(result.disparity, 5 / 1.5, rtol=1e-6)  # the fake says 5 at any size
    engine.shapes.clear()
    engine.matcher(*plane(96, 120, 8), inspect=False)  # 1.5 times and no more
    engine.matcher(*plane(96, 300, 8), inspect=False)  # wide enough
    engine.matcher(*plane(96, 192, 8), scale=1.0, inspect=False)  # asked for
    assert engine.shapes == [(1, 3, 144, 180), (1, 3, 96, 300), (1, 3, 96, 192)]


def test_real_matching_at_half_the_size(matcher):
    result = matcher(*plane(200, 400, 16), scale=0.5, inspect=False)
    assert np.median(np.abs(result.disparity[:, 48:] - 16)) < 0.3


@pytest.mark.parametrize("scale", [0, -1, 9, 1e-300, 0.001, 10**400, float("nan"), None, "half", True])
def test_a_scale_that_means_nothing_is_refused(matcher, scale):
    with pytest.raises(InputError, match=r"The scale must be from 0\.05 to 8"):
        matcher(*plane(60, 120, 8), scale=scale)


def test_a_batch_gives_what_single_calls_give(matcher):
    pairs = [plane(60, 120, 8), plane(48, 100, 4, seed=1), plane(60, 120, 12, seed=2)]
    results = matcher.batch(pairs, inspect=False)
    for result, pair in zip(results, pairs, strict=True):
        np.testing.assert_allclose(result.disparity, matcher(*pair, inspect=False).disparity, atol=1e-4)
        np.testing.assert_array_equal(result.left, pair[0])


def test_pairs_of_one_size_go_through_the_network_together_if_memory_allows():
    pairs = [plane(60, 120, 8)] * 4 + [plane(48, 120, 8)]
    engine = FakeEngine(max_disparity=192, sizes=SizeRule(12))
    engine.matcher.batch(pairs, inspect=False)
    assert engine.shapes == [(4, 3, 60, 120), (1, 3, 48, 120)]
    engine.shapes.clear()
    engine.memory = 1
    engine.matcher.batch(pairs, tile=None, inspect=False)
    assert engine.shapes == [(1, 3, 60, 120)] * 4 + [(1, 3, 48, 120)]


def test_right_disparity_and_occlusion_of_a_step():
    """A square at 12 px in front of a wall at 4 px hides 8 columns of it, to its left."""
    wall, square = textured_scene(100, 204, seed=1), textured_scene(60, 80, seed=2)
    left, right = wall[:, :200].copy(), wall[:, 4:].copy()
    left[20:80, 100:180] = square
    right[20:80, 88:168] = square
    result = StereoMatcher("sgbm", max_disparity=32)(left, right, check=True)
    assert result.right_disparity is not None
    assert np.median(result.right_disparity[30:70, 95:160]) == pytest.approx(12, abs=0.1)
    assert np.median(result.right_disparity[:, 20:80]) == pytest.approx(4, abs=0.1)
    assert result.occlusion is not None
    assert result.occlusion[30:70, 93:99].mean() > 0.9  # hidden behind the square
    assert result.occlusion[30:70, 104:176].mean() < 0.05
    assert result.occlusion[30:70, 20:88].mean() < 0.05
    assert result.occlusion[:, :3].all()  # outside the right image


def test_without_the_check_nothing_is_matched_twice():
    engine = FakeEngine()
    result = engine.matcher(*plane(60, 120, 8), inspect=False)
    assert result.right_disparity is None
    assert result.occlusion is None
    assert len(engine.shapes) == 1


def test_occlusion_is_a_difference_of_more_than_a_pixel():
    left = np.full((1, 6), 2.0, np.float32)
    right = np.array([[2, 2.9, 3.1, 2, 2, 2]], np.float32)
    #    x - 2 falls on:  outside, outside, 0, 1 (0.9 off), 2 (1.1 off), 3
    assert occluded(left, right).tolist() == [[True, True, False, False, True, False]]


def test_too_short_a_range_is_told():
    at_end = FakeEngine(45.0, candidate_step=3).matcher(*plane(60, 120, 8), inspect=False)
    assert at_end.warnings == [
        "100 % of the pixels are at the end of the search range of 48 pixels, which is probably too short; "
        "use a larger maximum disparity, or match at a scale of 0.5."
    ]
    assert FakeEngine(41.0, candidate_step=3).matcher(*plane(60, 120, 8), inspect=False).warnings == []
    half = FakeEngine(45.0, candidate_step=3).matcher(*plane(60, 120, 8), scale=0.5, inspect=False)
    assert "range of 96 pixels" in half.warnings[0]


def test_what_is_wrong_with_a_pair_is_told(matcher):
    left, right = plane(96, 192, 8)
    assert any("same" in warning for warning in matcher(left, left).warnings)
    assert matcher(left, right).warnings == []


def test_a_strict_match_refuses_the_pair_before_it_is_matched():
    engine = FakeEngine()
    left, right = plane(96, 192, 8)
    with pytest.raises(InputError, match="Both images are the same"):
        engine.matcher(left, left, strict=True)
    assert engine.shapes == []
    assert engine.matcher(left, right, strict=True).warnings == []


def test_how_images_are_stored_is_a_note_that_a_strict_match_accepts():
    left, right = (image[..., 0].astype(np.uint16) * 257 for image in plane(96, 192, 8))
    result = FakeEngine().matcher(left, right, strict=True)
    assert result.warnings == []
    assert any("gray" in note for note in result.notes)
    assert any("16 bits" in note for note in result.notes)
    assert result.summary()["notes"] == result.notes


def test_options_may_be_given_together_or_one_by_one():
    engine = FakeEngine(sizes=SizeRule(12))
    half = MatchOptions(scale=0.5, inspect=False)
    engine.matcher(*plane(96, 192, 8), options=half)
    engine.matcher(*plane(96, 192, 8), options=half, check=True)
    assert engine.shapes == [(1, 3, 48, 96)] * 3
    for tile in ("none", None, (200, 300), "200x300", "200×300"):
        assert MatchOptions(tile=tile).parsed_tile() == (None if tile in ("none", None) else (200, 300))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sacle": 2}, r"no option 'sacle' \(did you mean 'scale'\?\); known: scale, check"),
        ({"tile": "big"}, "The tile must be auto, none, or HEIGHTxWIDTH in pixels.*; got 'big'"),
        ({"tile": "²x²"}, "The tile must be auto, none, or HEIGHTxWIDTH.*; got '²x²'"),
        ({"tile": 512}, "The tile must be auto, none, or HEIGHTxWIDTH"),
        ({"tile": (0, 512)}, "The tile must be auto, none, or HEIGHTxWIDTH"),
        ({"check": "yes"}, "check must be True or False; got 'yes'"),
        ({"postprocess": None}, "postprocess must be one of auto, none, all; got None"),
        ({"options": {"scale": 1}}, "must be a MatchOptions; got {'scale': 1}"),
        ({"calibration": 5}, "Expected a calibration, a camera, or the path of a file; got 5"),
    ],
)
def test_wrong_options_are_one_sentence(options, message):
    with pytest.raises(InputError, match=message):
        FakeEngine().matcher(*plane(60, 120, 8), **options)


@pytest.mark.parametrize("image", [None, 5, "", np.zeros((4, 4), object), np.zeros((0, 3)), np.zeros(7)])
def test_what_is_no_image_is_one_sentence(image):
    with pytest.raises(AanetError, match="xpected an image"):
        FakeEngine().matcher(image, textured_scene(4, 4))


CAMERA = StereoCamera(fx=100, cx=60, cy=30, baseline_m=0.1, width=120, height=60)
LENS = np.array([[100.0, 0, 60], [0, 100, 30], [0, 0, 1]])
RAW = RawCalibration(
    left_matrix=LENS,
    right_matrix=LENS,
    left_distortion=np.array([[-0.2], [0.0], [0.0], [0.0]]),
    right_distortion=np.zeros((4, 1)),
    rotation=np.eye(3),
    translation=np.array([[-0.1], [0.0], [0.0]]),
)


def test_a_calibration_gives_the_camera_and_may_be_a_file(tmp_path):
    engine, pair = FakeEngine(), plane(60, 120, 8)
    CAMERA.save(tmp_path / "camera.json")
    for given in (CAMERA, Calibration(CAMERA), tmp_path / "camera.json", str(tmp_path / "camera.json")):
        result = engine.matcher(*pair, calibration=given, inspect=False)
        assert result.camera == CAMERA
        np.testing.assert_allclose(result.depth(), 100 * 0.1 / 5)
    with pytest.raises(ReadError, match="does not exist; expected a calibration file"):
        engine.matcher(*pair, calibration="missing.yml")


def test_a_raw_pair_is_rectified_before_it_is_matched():
    engine, pair = FakeEngine(), plane(60, 120, 8)
    calibration = Calibration(RAW)  # states no size: that of the images is taken
    result = engine.matcher(*pair, calibration=calibration, inspect=False)
    np.testing.assert_array_equal(result.left, calibration.rectify(*pair)[0])
    np.testing.assert_array_equal(result.right, calibration.rectify(*pair)[1])
    assert not np.array_equal(result.left, pair[0])
    assert result.camera == calibration.for_size(120, 60).camera
    assert result.camera.baseline_m == pytest.approx(0.1)


def test_a_calibration_of_another_size_is_refused_before_the_matching():
    engine = FakeEngine()
    with pytest.raises(InputError, match="for images of 120×60 pixels; these have 100×48"):
        engine.matcher(*plane(48, 100, 8), calibration=CAMERA)
    with pytest.raises(InputError, match=r"these have 60×30; .*not cropped, give resized=True"):
        engine.matcher(*plane(30, 60, 8), calibration=CAMERA)
    assert engine.shapes == []


def test_a_calibration_is_scaled_to_resized_images_if_asked():
    calibration = Calibration(CAMERA, resized=True)
    result = FakeEngine().matcher(*plane(30, 60, 8), calibration=calibration, inspect=False)
    assert result.camera == CAMERA.resized(60, 30)
    np.testing.assert_allclose(result.depth(), 50 * 0.1 / 5)


def test_a_matcher_says_what_it_is():
    matcher = FakeEngine().matcher
    assert repr(matcher) == "StereoMatcher(aanet, 48 px; fake)"


def test_two_sizes_are_refused(matcher):
    with pytest.raises(AanetError, match="left image has 120 × 60 pixels, the right one 100 × 60"):
        matcher(textured_scene(60, 120), textured_scene(60, 100))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("aanet",), "no bundled weights for AANet"),
        (("resnet",), "There is no model 'resnet'"),
        (("missing.safetensors",), "neither a file missing.safetensors"),
    ],
)
def test_a_model_without_weights_is_refused(arguments, message, monkeypatch, tmp_path):
    monkeypatch.setattr("aanet.models.weights.files.BUNDLED", tmp_path)
    with pytest.raises(AanetError, match=message):
        StereoMatcher(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "threads must be a whole number from 1 to 1024; got 0"),
        ({"max_disparity": 0}, "max_disparity must be a whole number from 1 to 4096; got 0"),
        ({"max_disparity": "192"}, "max_disparity must be a whole number from 1 to 4096; got '192'"),
        ({"max_disparity": 2**31 - 1}, "max_disparity must be a whole number from 1 to 4096; got 2147483647"),
        ({"engine": "cuda"}, "engine must be openvino or torch.*; got 'cuda'"),
        ({"precision": "int8"}, "precision must be auto or float32 or bf16; got 'int8'"),
        ({"engine": "openvino", "device": "cuda"}, "engine openvino runs on the cpu"),
        ({"engine": "torch", "device": "cuda:99"}, "device 'cuda:99' cannot be used"),
        ({"max_disparity": 50}, "must be a positive multiple of 8"),
    ],
)
def test_options_that_do_not_exist_are_refused(options, message):
    with pytest.raises(AanetError, match=message):
        StereoMatcher("stereonet_aa", weights="random", **options)


@pytest.mark.parametrize(
    "options", [{"engine": "torch"}, {"device": "cuda"}, {"weights": "random"}, {"precision": "bf16"}]
)
def test_sgbm_refuses_what_it_would_ignore(options):
    with pytest.raises(UnsupportedError, match="do not apply; leave them out"):
        StereoMatcher("sgbm", **options)
