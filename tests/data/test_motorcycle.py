"""The pair that comes with scikit-image: its sides, its ground truth and its calibration belong together."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import aanet
from aanet.data.motorcycle import MOTORCYCLE_CAMERA, motorcycle


def test_the_motorcycle_stands_where_its_calibration_says() -> None:
    sample = motorcycle()
    assert sample.disparity is not None
    depth = MOTORCYCLE_CAMERA.depth(sample.disparity)
    # The garage is some meters deep; forgetting doffs would put its wall beyond 25 m.
    assert 1.5 < depth[sample.valid].min() < 2.5
    assert 4 < depth[sample.valid].max() < 6


def test_the_sample_pair_is_two_arrays_in_order_and_a_calibration_for_them(tmp_path: Path) -> None:
    left, right, calibration = aanet.sample_pair()
    assert left.dtype == right.dtype == np.uint8
    assert left.shape == right.shape == (500, 741, 3)
    assert calibration.is_rectified
    assert (calibration.camera.width, calibration.camera.height) == (741, 500)
    calibration.camera.save(tmp_path / "calib.json")
    assert aanet.load_calibration(tmp_path / "calib.json").camera == calibration.camera == MOTORCYCLE_CAMERA

    truth = motorcycle()
    assert truth.disparity is not None
    rows, columns = np.nonzero(truth.valid)
    shift = np.rint(truth.disparity[rows, columns]).astype(int)
    inside = columns >= shift
    rows, columns, shift = rows[inside], columns[inside], shift[inside]
    seen, found, here = (
        image[rows, places].astype(float)
        for image, places in ((left, columns), (right, columns - shift), (right, columns))
    )
    # left(x) matches right(x - d): swapped sides would differ as much as pixels that do not match.
    assert np.abs(seen - found).mean() < 0.5 * np.abs(seen - here).mean()
