"""The world as a dataset: determinism, range, textures, cameras and bad input."""

from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import pytest

from aanet.data.sample import StereoSample
from aanet.errors import AanetError, ReadError
from aanet.synthetic import KIND_WEIGHTS, SyntheticWorld, prepare_worker, render_scene, scenes
from aanet.synthetic.camera_effects import MIDDLE_GRAY, CameraEffects, draw_cameras, expose
from aanet.synthetic.library import Cache, TextureLibrary, flat
from aanet.synthetic.materials import Materials
from aanet.synthetic.photo import segment
from aanet.synthetic.placement import Facet, Material, Viewpoint
from aanet.synthetic.props import Props
from aanet.synthetic.scene_builder import SceneBuilder
from aanet.synthetic.textures import GENERATORS
from aanet.synthetic.world import SCENE_KINDS

SIZE = (64, 128)
NO_EFFECTS = CameraEffects((1.0, 1.0, 1.0), 1.0, 0.0, 0.0, 0.0, 0.0, 0, 0.0)
NOISE = np.random.default_rng(0).standard_normal(200_000, np.float32)


def digest(sample: StereoSample) -> str:
    parts = (
        sample.left,
        sample.right,
        sample.disparity,
        sample.visible,
        sample.right_disparity,
        sample.right_visible,
    )
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of three photographs, made up."""
    folder = tmp_path_factory.mktemp("photographs")
    for number, name in enumerate(("dead_leaves", "cobbles", "facade")):
        tile = GENERATORS[name](np.random.default_rng(number))
        cv2.imwrite(str(folder / f"{number}.png"), tile[: 200 + 40 * number, :300, ::-1])
    return folder


@pytest.mark.parametrize("kind", SCENE_KINDS)
def test_every_kind_of_scene_gives_a_whole_sample(kind: str, photographs: Path) -> None:
    for textures, length in ((None, 1), (photographs, 3)):
        world = SyntheticWorld(SIZE, 48, seed=1, textures=textures, kinds={kind: 1.0}, length=length)
        for sample in world:
            assert kind in sample.name
            for image in (sample.left, sample.right):
                assert image.shape == (*SIZE, 3)
                assert image.dtype == np.uint8
                assert image.std() > 2
            for disparity in (sample.disparity, sample.right_disparity):
                assert disparity is not None
                assert disparity.dtype == np.float32
                assert disparity.shape == SIZE
                assert disparity.min() > 0
            assert sample.disparity is not None
            assert sample.disparity.max() < 48
            assert sample.valid is not None
            assert sample.valid.all()
            assert sample.visible is not None
            assert sample.right_visible is not None
            assert 0.1 < sample.visible.mean() < 1
            assert 0.1 < sample.right_visible.mean() < 1


def test_a_pair_depends_on_seed_and_index_alone(photographs: Path) -> None:
    def world(seed: int = 7) -> SyntheticWorld:
        return SyntheticWorld(SIZE, 64, seed=seed, textures=photographs)

    first, second = world(), world()
    forwards = [digest(first[index]) for index in range(5)]
    backwards = [digest(second[index]) for index in reversed(range(5))]
    assert forwards == backwards[::-1]
    assert len(set(forwards)) == 5
    assert digest(world(8)[0]) != forwards[0]
    assert [digest(pickle.loads(pickle.dumps(first))[2])] == forwards[2:3]
    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(lambda index: digest(second[index]), range(5))) == forwards


def test_another_process_makes_the_same_pair() -> None:
    code = (
        "import hashlib, numpy as np; from aanet.synthetic import SyntheticWorld as W;"
        "s = W((64, 128), 64, seed=3)[1];"
        "parts = (s.left, s.right, s.disparity, s.visible, s.right_disparity, s.right_visible);"
        "print(hashlib.sha256(b''.join(np.ascontiguousarray(p).tobytes() for p in parts)).hexdigest())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == digest(SyntheticWorld(SIZE, 64, seed=3)[1])


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_any_number_of_workers_gives_the_same_pairs(workers: int) -> None:
    from torch.utils.data import DataLoader

    world = SyntheticWorld(SIZE, 64, seed=9, length=4, kinds={"photo": 1.0})
    loader = DataLoader(world, batch_size=None, num_workers=workers, worker_init_fn=prepare_worker)  # type: ignore[arg-type]
    assert [digest(sample) for sample in loader] == [digest(world[index]) for index in range(4)]


@pytest.fixture(scope="module")
def many() -> list[tuple[str, np.ndarray]]:
    """Kinds and disparities of the first eighty scenes of a world."""
    world = SyntheticWorld((32, 336), 192, seed=0)
    scenes = [world.scene(index) for index in range(80)]
    return [(scene.kind, render_scene(scene).disparity) for scene in scenes]


@pytest.mark.slow
def test_disparities_cover_the_range_with_the_bias_of_real_data(many: list[tuple[str, np.ndarray]]) -> None:
    seen = sum(np.histogram(disparity, bins=12, range=(0, 192))[0] for _, disparity in many)
    largest = np.array([disparity.max() for _, disparity in many])
    assert (seen > 0).all()
    assert largest.max() < 192
    assert 35 < np.median(largest) < 90
    assert 0.05 < np.mean(largest > 100) < 0.4


def test_the_mixture_shows_every_kind(many: list[tuple[str, np.ndarray]]) -> None:
    assert {kind for kind, _ in many} == set(SCENE_KINDS) == set(KIND_WEIGHTS)


@pytest.mark.parametrize("kind", ["room", "street", "corridor", "table_top"])
def test_shapes_float_in_half_of_the_scenes(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []

    def counted(props: Props, at: tuple[float, float, float], distance: float) -> Facet:
        calls.append(distance)
        return flyer(props, at, distance)

    flyer = scenes._flyer
    monkeypatch.setattr(scenes, "_flyer", counted)
    world, counts = SyntheticWorld(SIZE, 64, seed=2, kinds={kind: 1.0}), []
    for index in range(24):
        calls.clear()
        world.scene(index)
        counts.append(len(calls))
    assert 6 <= counts.count(0) <= 18
    assert 6 <= max(counts) <= scenes.MOST_FLOATING


def test_a_surface_seen_almost_edge_on_has_no_negative_disparities() -> None:
    world = SyntheticWorld((170, 320), 192, seed=11, kinds={"street": 1.0})
    assert render_scene(world.scene(0)).disparity.min() > 0  # with a car's window, a line of pixels


def test_a_point_at_a_pixel_is_projected_there() -> None:
    turn = cv2.Rodrigues(np.array([0.2, -0.3, 0.05]))[0]
    view = Viewpoint(90.0, 61.0, 30.0, SIZE, 1.5, turn)
    point = view.point_at(20.0, 50.0, 3.0)
    assert point[2] == 3.0
    np.testing.assert_allclose(view.project(view.to_camera(np.array([point]))), [[20.0, 50.0]])


@pytest.mark.parametrize("name", GENERATORS)
def test_every_generator_paints_a_tile_and_repeats_it(name: str) -> None:
    tile, again, other = (GENERATORS[name](np.random.default_rng(seed)) for seed in (4, 4, 5))
    assert tile.shape == (512, 512, 3)
    assert tile.dtype == np.uint8
    np.testing.assert_array_equal(tile, again)
    assert (tile != other).mean() > 0.3
    if name not in ("plain", "sky"):
        assert tile.std() > 8


def test_tiles_do_not_depend_on_the_order_of_asking() -> None:
    one, two = TextureLibrary(3), TextureLibrary(3)
    one.tile("bricks", 0)
    np.testing.assert_array_equal(one.tile("wood", 2).image, two.tile("wood", 2).image)


def test_the_cache_forgets_what_was_used_longest_ago() -> None:
    cache, made = Cache(2), []

    def make(key: str) -> str:
        return cache.get(key, lambda: made.append(key) or key)

    for key in "abacab":
        assert make(key) == key
    assert made == ["a", "b", "c", "b"]


def test_segments_follow_the_edges_of_the_picture() -> None:
    picture = np.full((120, 160, 3), 40, np.uint8)
    picture[:, 80:] = (200, 180, 60)
    cv2.circle(picture, (40, 60), 24, (30, 60, 220), -1)
    labels = segment(picture)
    assert labels.shape == (60, 80)
    assert labels.max() + 1 == len(np.unique(labels)) == 3
    assert labels[30, 20] != labels[5, 5] != labels[30, 70]
    truth = cv2.resize(picture, (80, 60), interpolation=cv2.INTER_NEAREST)[..., 2] == 220
    assert ((labels == labels[30, 20]) == truth).mean() > 0.985


def test_a_perfect_camera_only_rounds() -> None:
    image = np.random.default_rng(0).uniform(0, 255, (*SIZE, 3)).astype(np.float32)
    taken = expose(image, NO_EFFECTS, NOISE, np.random.default_rng(0))
    assert np.abs(taken - image).max() <= 0.5001


def effect(image: np.ndarray, **changes: object) -> np.ndarray:
    camera = CameraEffects(**{**vars(NO_EFFECTS), **changes})
    return expose(image.astype(np.float32), camera, NOISE, np.random.default_rng(1)).astype(np.float64)


def test_each_effect_does_what_its_name_says() -> None:
    gray = np.full((*SIZE, 3), 100.0)
    np.testing.assert_allclose(effect(gray, gain=(1.2, 1.0, 0.5)).mean(axis=(0, 1)), (120, 100, 50))
    assert effect(gray, gamma=0.8).mean() == pytest.approx(255 * (100 / 255) ** 0.8, abs=0.6)
    assert effect(gray, read_noise=4.0).std() == pytest.approx(4.0, rel=0.05)
    demosaiced = effect(gray, read_noise=8.0, demosaiced=True).astype(float) - gray
    assert demosaiced.std(axis=(0, 1)) == pytest.approx([9.2, 5.6, 9.2], rel=0.1)
    neighbors = np.corrcoef(demosaiced[:, 1:, 0].ravel(), demosaiced[:, :-1, 0].ravel())[0, 1]
    assert 0.4 < neighbors < 0.7  # 0.5 was measured in a dark image of KITTI
    bright = effect(np.full((*SIZE, 3), 250.0), shot_noise=3.0, gain=(0.8, 0.8, 0.8))
    assert bright.std() > 1.5 * effect(gray * 0.2, shot_noise=3.0).std()
    dark = effect(gray, vignetting=0.4)
    assert dark[0, 0, 0] == pytest.approx(60, abs=1)
    assert dark[SIZE[0] // 2, SIZE[1] // 2, 0] == pytest.approx(100, abs=1)
    ramp = np.broadcast_to(np.arange(SIZE[0], dtype=np.float64)[:, None, None] * 3, (*SIZE, 3)).copy()
    assert (effect(ramp, vertical_shift=0.5) - ramp)[8:-8].mean() == pytest.approx(1.5, abs=0.3)
    step = np.zeros((*SIZE, 3))
    step[:, 64:] = 200
    assert effect(step, blur=0.9)[20, 63, 0] > 30
    tile = GENERATORS["print"](np.random.default_rng(0))[: SIZE[0], : SIZE[1]].astype(np.float64)
    assert 0.5 < np.abs(effect(tile, jpeg_quality=60) - tile).mean() < 10


@pytest.mark.parametrize("shift", [-0.5, -0.125, 0.25, 0.4375])
def test_a_vertical_shift_interpolates_as_a_cubic_warp_does(shift: float) -> None:
    image = np.random.default_rng(3).uniform(60, 190, (*SIZE, 3)).astype(np.float32)
    move = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, shift]])
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    warped = cv2.warpAffine(image, move, SIZE[::-1], flags=flags, borderMode=cv2.BORDER_REPLICATE)
    assert np.abs(effect(image, vertical_shift=shift) - warped).max() < 0.6  # rounded to whole gray levels


def test_cameras_differ_and_some_are_misaligned_by_at_most_half_a_pixel() -> None:
    pairs = [draw_cameras(np.random.default_rng(seed), 90.0) for seed in range(60)]
    shifts = np.array([right.vertical_shift for _, right in pairs])
    assert np.abs(shifts).max() <= 0.5
    assert 0.1 < (shifts != 0).mean() < 0.6
    assert all(left.gain != right.gain for left, right in pairs)
    assert {left.jpeg_quality > 0 for left, _ in pairs} == {True, False}


def test_a_dark_scene_is_exposed_longer() -> None:
    dark, bright = (
        np.mean([draw_cameras(np.random.default_rng(s), b)[0].gain for s in range(30)]) for b in (60, 180)
    )
    assert dark > 1.5 * bright


def test_some_pairs_are_taken_in_the_dark_and_noisy_and_some_are_overexposed() -> None:
    pairs = [draw_cameras(np.random.default_rng(seed), MIDDLE_GRAY) for seed in range(400)]
    gain = np.array([np.mean(left.gain) for left, _ in pairs])
    dark, glaring = gain < 0.4, gain > 1.8
    assert 0.02 < dark.mean() < 0.12
    assert 0.02 < glaring.mean() < 0.12
    assert gain.min() < 0.08
    read_noise = np.array([left.read_noise for left, _ in pairs])
    assert np.median(read_noise[dark]) > 2 * np.median(read_noise[~dark])
    # Both cameras are in the same tunnel.
    assert all(0.6 < np.mean(right.gain) / np.mean(left.gain) < 1.7 for left, right in pairs)


def test_half_of_the_corridors_are_dark_though_their_lamps_saturate() -> None:
    world = SyntheticWorld((64, 96), 32, seed=5, length=60, kinds={"corridor": 1.0})
    lefts = [world[index].left for index in range(60)]
    dark = [left for left in lefts if np.median(left) < 25]
    assert 15 <= len(dark) <= 45
    assert 5 <= sum(int(left.max()) > 200 for left in dark) < len(dark)


def test_what_is_in_full_sun_saturates_the_camera() -> None:
    materials = Materials(SyntheticWorld(SIZE, 64).library, np.random.default_rng(0))
    roads = np.array([max(materials.pick("road").color) for _ in range(400)])
    assert 0.05 < (roads > 1.4).mean() < 0.15
    assert roads.max() < 4.0
    assert max(max(materials.pick("leaf").color) for _ in range(400)) < 1.5


@pytest.mark.parametrize("at", [(-1.5, 0.0, 4.0), (0.2, 0.0, 5.0), (2.0, 1.8, 3.0)])
def test_the_faces_of_a_tapered_box_hide_its_others(at: tuple[float, float, float]) -> None:
    view = Viewpoint(300.0, 96.0, 48.0, SIZE, 1.0, np.eye(3))
    rng = np.random.default_rng(0)
    builder = SceneBuilder(view, rng, "street", np.array([0.0, -1.0, 0.0]), 0.5)
    props = Props(builder, Materials(SyntheticWorld(SIZE, 64).library, rng))
    size, top = (1.0, 0.8, 1.4), (0.5, 0.7)
    faces = props.box(at, size, 0.4, Material(flat((1, 1, 1))), top=top)
    assert 1 <= len(faces) <= 3
    center = view.to_camera(np.array([(at[0], at[1] + 0.4, at[2])]))[0]
    for face in faces:
        corners = face.contours[0]
        normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
        assert normal @ (corners[3] - corners[0]) == pytest.approx(0.0, abs=1e-9)  # flat
        # The camera, at the origin, is on the other side of the face than the center of the box.
        assert (normal @ -corners[0]) * (normal @ (center - corners[0])) < 0
        inside = props.decal(face, [np.array([[0.5, 0.5], [0.1, 0.9]])], face.material).contours[0]
        np.testing.assert_allclose(inside[0], corners.mean(axis=0))
        assert normal @ (inside[1] - corners[0]) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": (16, 128)}, "size"),
        ({"max_disparity": 2}, "maximum disparity"),
        ({"max_disparity": 100_000}, "maximum disparity"),
        ({"seed": -1}, "seed"),
        ({"length": 0}, "length"),
        ({"kinds": {"castle": 1.0}}, "castle"),
        ({"kinds": {"room": -1.0, "street": 2.0}}, "weights"),
        ({"kinds": {}}, "weights"),
        ({"textures": "no/such/folder"}, "no/such/folder"),
    ],
)
def test_bad_arguments_are_one_sentence(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(AanetError, match=message):
        SyntheticWorld(**arguments)  # type: ignore[arg-type]


def test_a_folder_without_photographs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing here")
    with pytest.raises(ReadError, match="no photographs"):
        SyntheticWorld(textures=tmp_path)


def test_a_broken_or_tiny_photograph_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 not a picture")
    with pytest.raises(AanetError, match=r"broken\.jpg"):
        SyntheticWorld(SIZE, 64, textures=tmp_path, kinds={"photo": 1.0})[0]
    (tmp_path / "broken.jpg").unlink()
    cv2.imwrite(str(tmp_path / "tiny.png"), np.zeros((4, 4, 3), np.uint8))
    with pytest.raises(AanetError, match=r"tiny\.png"):
        SyntheticWorld(SIZE, 64, textures=tmp_path, kinds={"photo": 1.0})[0]


def test_an_index_beyond_the_end_stops_iteration() -> None:
    world = SyntheticWorld(SIZE, 64, length=2)
    with pytest.raises(IndexError):
        world[2]
    assert len(world) == 2


def test_a_flat_texture_is_one_pixel() -> None:
    np.testing.assert_array_equal(flat((1.0, 0.5, 0.0)).image, [[[255, 127, 0, 255]]])


def test_cars_mirror_what_seems_to_lie_behind_their_paint() -> None:
    world = SyntheticWorld((96, 192), 64, seed=3, kinds={"street": 1.0})
    mirrors = [s for index in range(12) for s in world.scene(index).surfaces if s.reflection is not None]
    assert len(mirrors) > 10
    for surface in mirrors:
        x0, y0, x1, y1 = surface.left_box
        x, y = np.array([x0, x1, x0, x1], np.float32), np.array([y0, y0, y1, y1], np.float32)
        assert 0.15 <= surface.reflection.strength <= 0.95
        assert surface.reflection.disparity <= max(surface.plane.disparity(x, y).max(), 0.0)
