from __future__ import annotations

import cv2
import numpy as np
import pytest

from aanet.errors import ReadError
from aanet.geometry.key_values import is_storage, read_fields

RNG = np.random.default_rng(3)
MATRICES = {
    "d": RNG.normal(size=(3, 14)) * 10.0 ** RNG.integers(-9, 9, (3, 14)),
    "f": RNG.normal(size=(5, 1)).astype(np.float32),
    "u": RNG.integers(0, 256, (2, 3), dtype=np.uint8),
    "s": RNG.integers(-1000, 1000, (1, 9), dtype=np.int16),
    "i": RNG.integers(-(2**31), 2**31, (4, 2), dtype=np.int32),
    "three_channels": RNG.normal(size=(1, 2, 3)),
    "empty": np.zeros((0, 0)),
    "one_dimension": np.arange(5.0),
}
FORMATS = (".yml", ".xml", ".json")


def read_storage(text: str, keys: set[str]) -> dict[str, np.ndarray]:
    fields = read_fields(text, "a")
    return {key: fields.numbers(key) for key in keys}


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
    found = read_storage(text, {*MATRICES, "width", "error", *sizes})
    for key, matrix in MATRICES.items():
        np.testing.assert_array_equal(found[key].astype(matrix.dtype), matrix, err_msg=key)
    assert (found["width"].shape, found["width"], found["error"]) == ((), 640, -1.25e-3)
    assert all(found[size].tolist() == [640, 480] for size in sizes)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("key", ["unknown", "text", "map"])
def test_what_is_not_a_finite_number_is_refused_if_it_is_needed(suffix: str, key: str) -> None:
    text = _storage(suffix)
    assert set(read_storage(text, {"width"})) == {"width"}
    with pytest.raises(ReadError, match=f"{key} cannot be parsed"):
        read_storage(text, {key})


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
    assert read_storage(MATRIX, {"M"})["M"].tolist() == [[1, 2], [3, 4]]
    assert old in MATRIX
    with pytest.raises(ReadError, match="cannot be parsed"):
        read_storage(MATRIX.replace(old, new), {"M"})


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
        read_storage(text, {"M"})


PLAIN = """# a comment
image_width: 640  # another
matrix:
  rows: 2
  cols: 2
  data: [1.0, 2.0,
         3.0, 4.0]
flow: [[1, 2], [3, 4]]
rows:
- [1.0, 2.0]
- [-3.0, 4e0]
nested:
- - 1
  - -2
- - 3
  - 4
items:
- 1
- -2.5
empty: []
model: "fisheye"
cam0:
  T_cn_cnm1:
  - [1, 0]
  - [0, 1]
  intrinsics: [5, 6]
  camera_model: pinhole
"""


def test_plain_yaml_has_lists_mappings_comments_and_strings() -> None:
    fields = read_fields(PLAIN, "a")
    assert fields.numbers("image_width") == 640
    assert fields.numbers("matrix").tolist() == [[1, 2], [3, 4]]
    assert fields.numbers("flow").tolist() == [1, 2, 3, 4]
    assert fields.numbers("rows").tolist() == [1, 2, -3, 4]
    assert fields.numbers("nested").tolist() == [1, -2, 3, 4]
    assert fields.numbers("items").tolist() == [1, -2.5]
    assert fields.numbers("empty").size == 0
    assert (fields.text("model"), fields.text("absent"), fields.text("empty")) == ("fisheye", None, "[]")
    camera = fields.mapping("cam0")
    assert camera is not None
    assert camera.numbers("T_cn_cnm1").tolist() == [1, 0, 0, 1]
    assert camera.numbers("intrinsics").tolist() == [5, 6]
    assert camera.text("camera_model") == "pinhole"
    assert fields.mapping("model") is None


def test_json_has_lists_of_lists_and_mappings() -> None:
    fields = read_fields('{"K": [[1, 2], [3, 4.5]], "cam0": {"d": [1]}, "m": "fisheye", "b": true}', "a")
    assert fields.numbers("K").tolist() == [1, 2, 3, 4.5]
    camera = fields.mapping("cam0")
    assert camera is not None
    assert camera.numbers("d").tolist() == [1]
    assert fields.text("m") == "fisheye"
    with pytest.raises(ReadError, match="a: b cannot be parsed"):
        fields.numbers("b")


def test_repeated_messages_are_one_and_different_ones_are_refused() -> None:
    message = "header:\n  stamp:\n    sec: {}\nk: [1, 2]\n---\n"
    assert read_fields(message.format(1) + message.format(2), "a").numbers("k").tolist() == [1, 2]
    with pytest.raises(ReadError, match="a has 2 documents that differ; expected one camera per file"):
        read_fields(message.format(1) + message.format(2).replace("[1", "[3"), "a")
