"""A matcher with known errors gets the scores that follow from them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from aanet.data.datasets import StereoDataset, open_dataset
from aanet.data.sample import StereoSample
from aanet.errors import AanetError
from aanet.evaluation import Evaluation, evaluate
from helpers import layouts


@dataclass
class Result:
    disparity: np.ndarray
    confidence: np.ndarray | None = None


def answering(disparity: np.ndarray, confidence: np.ndarray | None = None):
    """A matcher that gives the same answer to every pair."""

    def match(*images: np.ndarray) -> Result:
        assert [image.dtype for image in images] == [np.uint8, np.uint8]
        return Result(disparity.astype(np.float32), confidence)

    return match


def off_by(error: float):
    """A matcher that is off by the same everywhere."""
    return answering(np.nan_to_num(layouts.truth(), nan=50.0) + error)


@pytest.fixture
def kitti(tmp_path: Path) -> StereoDataset:
    return open_dataset("kitti2015", layouts.kitti2015(tmp_path), "all")


def test_a_perfect_matcher_has_no_error(kitti: StereoDataset) -> None:
    result = evaluate(off_by(0), kitti)
    assert result.value("epe") == 0
    assert result.value("d1_all") == 0
    assert result.value("density") == 100
    assert len(result.pairs) == 4


def test_a_constant_offset_is_the_end_point_error(kitti: StereoDataset) -> None:
    result = evaluate(off_by(-1.5), kitti)
    assert result.value("epe") == pytest.approx(1.5)
    assert result.value("bad1") == 100
    assert result.value("bad2") == 0


def test_errors_on_objects_count_as_foreground(kitti: StereoDataset) -> None:
    disparity = np.nan_to_num(layouts.truth())
    disparity[:, 30:] += 10
    result = evaluate(answering(disparity), kitti)
    assert (result.value("d1_fg"), result.value("d1_bg")) == (100, 0)
    known = np.isfinite(layouts.truth())
    assert result.value("d1_all") == pytest.approx(100 * known[:, 30:].sum() / known.sum())


def test_errors_on_occluded_pixels_are_not_in_the_noc_figures(tmp_path: Path) -> None:
    disparity = np.nan_to_num(layouts.truth()) + 10 * layouts.occluded()
    result = evaluate(answering(disparity), open_dataset("kitti2012", layouts.kitti2012(tmp_path)))
    assert result.value("out_noc") == 0
    assert result.value("avg_noc") == 0
    assert result.value("out_all") > 0
    assert result.region("occluded")["epe"] == pytest.approx(10)


def test_scene_flow_does_not_score_disparities_of_192_and_more(tmp_path: Path) -> None:
    layouts.sceneflow(tmp_path)
    truth = np.full((24, 40), 100, np.float32)
    truth[:, :10] = 192
    layouts.write_pfm(tmp_path / "FlyingThings3D/disparity/TEST/B/0003/left/0006.pfm", truth)
    dataset = open_dataset("sceneflow", tmp_path, "test")
    result = evaluate(answering(np.full((24, 40), 101)), dataset)
    assert result.value("epe") == 1
    assert result.pairs[0].regions["all"].pixels == 24 * 30


def test_holes_are_filled_scored_and_counted(kitti: StereoDataset) -> None:
    disparity = np.nan_to_num(layouts.truth(), nan=2.0)
    disparity[12, 20:] = np.nan
    result = evaluate(answering(disparity), kitti)
    sums = result.pairs[0].regions["all"]
    assert sums.pixels - sums.predicted == 20
    truth = layouts.truth()[12]
    assert sums.absolute == pytest.approx(float(np.abs(truth[20:] - truth[19]).sum()), rel=1e-5)


def test_confidence_gives_an_area_and_none_gives_none(kitti: StereoDataset) -> None:
    error = np.tile(np.arange(40, dtype=np.float32), (24, 1))
    ranking = answering(np.nan_to_num(layouts.truth()) + error, -error)
    assert evaluate(ranking, kitti).ause == pytest.approx(0, abs=1e-9)
    assert evaluate(off_by(1), kitti).ause is None


def test_result_is_json_without_nan_and_says_the_protocol(kitti: StereoDataset) -> None:
    facts = json.loads(json.dumps(evaluate(off_by(1), kitti, model="m").as_dict(), allow_nan=False))
    assert facts["model"] == "m"
    assert facts["protocol"]["range"] == "every known disparity"
    assert facts["metrics"]["epe"] == pytest.approx(1)
    assert facts["regions"]["textureless"]["epe"] is None  # noise has texture everywhere
    assert set(facts["over_images"]) == set(facts["over_pixels"])
    assert facts["pairs"][0]["name"] == "kitti2015 000000"


def test_notes_say_what_the_ground_truth_could_not_tell(tmp_path: Path) -> None:
    layouts.kitti2015(tmp_path)
    (tmp_path / "training/obj_map/000001_10.png").unlink()
    (tmp_path / "training/disp_noc_0/000002_10.png").unlink()
    (tmp_path / "training/disp_occ_0/000005_10.png").unlink()
    notes = evaluate(off_by(0), open_dataset("kitti2015", tmp_path, "all")).notes()
    assert [note.split(" pairs ")[0] for note in notes] == ["1 of 4"] * 3


def test_only_the_asked_pairs_are_run_and_observed(kitti: StereoDataset) -> None:
    seen: list[tuple[int, str]] = []

    def observe(index: int, sample: StereoSample, dense: np.ndarray) -> None:
        assert np.isfinite(dense).all()
        seen.append((index, sample.name))

    result = evaluate(off_by(0), kitti, indices=[0, 3], observe=observe)
    assert seen == [(0, "kitti2015 000000"), (3, "kitti2015 000005")]
    assert [pair.name for pair in result.pairs] == [name for _, name in seen]


def test_the_pair_is_named_when_a_matcher_fails(kitti: StereoDataset) -> None:
    def refuse(*_: np.ndarray) -> Result:
        raise AanetError("the images are swapped.")

    with pytest.raises(AanetError, match="kitti2015 000000: the images are swapped"):
        evaluate(refuse, kitti)
    with pytest.raises(AanetError, match=r"kitti2015 000000: the matcher returned a map of \(2, 2\)"):
        evaluate(answering(np.zeros((2, 2))), kitti)


def test_pairs_without_ground_truth_cannot_be_scored(tmp_path: Path) -> None:
    test = open_dataset("kitti2015", layouts.kitti2015(tmp_path), "test")
    with pytest.raises(AanetError, match="kitti2015 000000 has no ground truth"):
        evaluate(off_by(0), test)


def test_averages_over_images_and_pixels_are_both_there(kitti: StereoDataset) -> None:
    result: Evaluation = evaluate(off_by(2.5), kitti)
    assert result.value("epe", "images") == pytest.approx(result.value("epe", "pixels"))
    with pytest.raises(AanetError, match="no pairs of kitti2015"):
        evaluate(off_by(0), kitti, indices=[])
