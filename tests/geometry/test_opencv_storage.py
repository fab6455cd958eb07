from __future__ import annotations

import cv2
import numpy as np
import pytest

from aanet.errors import ReadError
from aanet.geometry.opencv_storage import is_storage, read_storage

RNG = np.random.default_rng(3)
MATRICES = {
    "d": RNG.normal(size=(3, 14)) * 10.0 ** RNG.integers(-9, 9, (3, 14)),
    "f": RNG.normal(size=(5, 1)).astype(np.float32),
    "u": RNG.integers(0, 256, (2, 3), dtype=np.uint8),
    "s": RNG.integers(-1000, 1000, (1, 9), dtype=np.int16),
    "i": RNG.integers(-(2**31), 2**31, (4, 2), dtype=np.int32),
    "three_channels": RNG.normal(size=(1, 2, 3)),
    "empty": np.zeros((0, 0)),
}
FORMATS = (".yml", ".xml", ".json")


def _storage(suffix: str) -> str:
    storage = cv2.FileStorage(suffix, cv2.FILE_STORAGE_WRITE | cv2.FILE_STORAGE_MEMORY)
    for key, matrix in MATRICES.items():
        storage.write(key, matrix)
    storage.write("width", 640)
    storage.write("error", -1.25e-3)
    storage.write("text", "words: [1] <b> & rows")
    storage.write("unknown", np.array([[np.nan, np.inf]]))
    if suffix != ".json":  # OpenCV's comments are not valid in JSON
        storage.writeComment("a comment", False)
    for flow in (0, cv2.FileNode_FLOW):
        storage.startWriteStruct(f"size{flow}", cv2.FileNode_SEQ | flow)
        for side in (640, 480):
            storage.write("", side)
        storage.endWriteStruct()
    storage.startWriteStruct("map", cv2.FileNode_MAP)
    storage.write("rows", 3)
    storage.endWriteStruct()
    return storage.releaseAndGetString()


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_opencv_writes_is_read_back(suffix: str) -> None:
    text = _storage(suffix)
    assert is_storage(text)
    sizes = ("size0", f"size{cv2.FileNode_FLOW}")
    found = read_storage(text, "a", {*MATRICES, "width", "error", *sizes})
    for key, matrix in MATRICES.items():
        np.testing.assert_array_equal(found[key].astype(matrix.dtype), matrix, err_msg=key)
    assert (found["width"].shape, found["width"], found["error"]) == ((), 640, -1.25e-3)
    assert all(found[size].tolist() == [640, 480] for size in sizes)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("key", ["unknown", "text", "map"])
def test_what_is_not_a_finite_number_is_refused_if_it_is_needed(suffix: str, key: str) -> None:
    text = _storage(suffix)
    assert set(read_storage(text, "a", {"width"})) == {"width"}
    with pytest.raises(ReadError, match=f"{key} cannot be parsed"):
        read_storage(text, "a", {key})


MATRIX = (
    "%YAML:1.0\n---\nM: !!opencv-matrix\n   rows: 2\n   cols: 2\n   dt: d\n   data: [ 1., 2.,\n  3., 4. ]\n"
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("   cols: 2\n", ""),
        ("cols: 2", "cols: 3"),
        ("cols: 2", "cols: -2"),
        ("cols: 2", "cols: 2.5"),
        ("cols: 2", "cols: 1e300"),
        ("rows: 2", "rows: 99999999999999999999"),
        ("rows: 2", "rows: 2\n   rows: 2"),
        ("dt: d", "dt: 9999d"),
        ("dt: d", "dt: 2d"),
        ("4. ]", "4., 5. ]"),
        ("4. ]", ".Nan ]"),
        ("4. ]", "1e999 ]"),
        ("4. ]", "word ]"),
        ("M: ", "M: 1\nM: "),
    ],
)
def test_a_matrix_must_fit_its_data(old: str, new: str) -> None:
    assert read_storage(MATRIX, "a", {"M"})["M"].tolist() == [[1, 2], [3, 4]]
    assert old in MATRIX
    with pytest.raises(ReadError, match="cannot be parsed"):
        read_storage(MATRIX.replace(old, new), "a", {"M"})


@pytest.mark.parametrize(
    "text",
    [
        "<?xml version='1.0'?>" + "<a>" * 40_000,
        "<?xml version='1.0'?><opencv_storage><M>1</N></opencv_storage>",
        "<?xml version='1.0'?><opencv_storage><M>1</M>",
        "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><opencv_storage></opencv_storage>",
        '{"opencv-matrix": ' + "[" * 100_000,
        '["opencv-matrix"]',
        '{"opencv-matrix": ' + "9" * 10_000 + "}",
        "%YAML:1.0\nno colon here",
    ],
)
def test_a_broken_structure_is_one_sentence(text: str) -> None:
    with pytest.raises(ReadError):
        read_storage(text, "a", {"M"})
