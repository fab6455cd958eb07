"""The package's readers, one per kind of file: they return, or raise the package's own error.

Every reader takes the content of a file and a folder for it, and imports what it needs: torch takes seconds.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from aanet.errors import AanetError, OptionError, ReadError
from fuzz import valid_files as valid

if TYPE_CHECKING:
    from aanet.web.errors import ServiceError

Reader = Callable[[bytes, Path], None]


class Kind(NamedTuple):
    """A kind of file."""

    group: str  # what is tested together, because it loads the same libraries
    files: Callable[[], list[bytes]]  # valid ones
    read: Reader
    accepted: bool = True  # whether the valid files are; a small file of weights fits no network


def _file(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def _image(suffix: str, data: bytes, folder: Path) -> None:
    from aanet.io.images import as_rgb8, as_rgb_float, read_image

    image = read_image(_file(folder, f"a{suffix}", data))
    assert as_rgb8(image).shape == as_rgb_float(image).shape == (*image.shape[:2], 3)


def _disparity(suffix: str, data: bytes, folder: Path) -> None:
    from aanet.io.disparity import read_disparity

    found = read_disparity(_file(folder, f"a{suffix}", data))
    assert found.ndim == 2
    assert not np.isinf(found).any()


def _depth(suffix: str, data: bytes, folder: Path) -> None:
    from aanet.io.depth import read_depth

    found = read_depth(_file(folder, f"a{suffix}", data))
    assert found.ndim == 2
    assert not np.isinf(found).any()


def _points(data: bytes, folder: Path) -> None:
    from aanet.io.points import read_ply

    points, colors = read_ply(_file(folder, "a.ply", data))
    assert points.shape == colors.shape


def _calibration(data: bytes, folder: Path) -> None:
    from aanet.geometry.calibration import load_calibration

    is_ros = b"matrix:" in data and not data.startswith(b"%")
    right = _file(folder, "right.yaml", valid.ROS_RIGHT.encode()) if is_ros else None
    path = _file(folder, "a.txt", data)
    try:
        calibration = load_calibration(path, right)
    except OptionError:  # some files describe rectified images only
        calibration = load_calibration(path, right, rectified=True)
    camera = calibration.for_size(640, 480).camera
    assert all(value is None or np.isfinite(value) for value in vars(camera).values())


def _upload(data: bytes, _: Path) -> None:
    from aanet.web.errors import ServiceError
    from aanet.web.uploads import CalibrationOptions, read_pair

    try:
        read_pair({"left": data, "right": data}, 1_000_000, CalibrationOptions()).decode()
    except ServiceError as error:
        raise _refusal(error) from error


def _uploaded_calibration(data: bytes, _: Path) -> None:
    from aanet.web.errors import ServiceError
    from aanet.web.uploads import CalibrationOptions, read_calibration

    # Some files describe rectified images only.
    options = CalibrationOptions(rectified=b"P1" in data and b"M1" not in data)
    try:
        read_calibration({"calib": data}, (640, 480), options)
    except ServiceError as error:
        raise _refusal(error) from error


def _refusal(error: ServiceError) -> AanetError:
    assert error.status in (413, 415, 422), error.status
    return ReadError(error.message)


def _table(data: bytes, folder: Path) -> None:
    from aanet.data.datasets.folder import Folder
    from aanet.io.pairs import find_pairs

    _file(folder, "a.png", valid.images(".png")[0])
    _file(folder, "a.npy", valid.disparities(".npy")[0])
    table = _file(folder, "a.csv", data)
    for files in Folder(table).pairs:
        assert not Path(files.key).is_absolute()
    for pair in itertools.islice(find_pairs(table), 5):
        pair.load()


def _video(data: bytes, folder: Path) -> None:
    from aanet.io.pairs import find_pairs

    for pair in itertools.islice(find_pairs(_file(folder, "a.avi", data)), 5):
        assert pair.load()[0].ndim == 3


def _recipe(data: bytes, folder: Path) -> None:
    from aanet.training.recipe import load_recipe

    _file(folder, "base.toml", b"[augmentation]\ncolor = false\n")
    load_recipe(_file(folder, "a.toml", data), ["stage.0.batch=4"]).digest()


def _weights(suffix: str, data: bytes, folder: Path) -> None:
    from aanet.models.weights import checkpoint

    stored = checkpoint.read(_file(folder, f"a{suffix}", data))
    with contextlib.suppress(AanetError):  # the weights do not fit the network
        stored.network()


def _onnx(data: bytes, folder: Path) -> None:
    _run(_file(folder, "a.onnx", data))


def _openvino(changed: str, data: bytes, folder: Path) -> None:
    for suffix, content in zip((".xml", ".bin"), _openvino_files(), strict=True):
        _file(folder, f"a{suffix}", data if suffix == changed else content)
    _run(folder / "a.xml")


def _run(path: Path) -> None:
    from aanet.engines.exported import open_exported

    image = np.full((1, 3, 24, 24), 0.5, np.float32)
    for values in open_exported(path)(image, image):
        assert values.shape == (1, 24, 24)


def _foreign(suffix: str, data: bytes, folder: Path) -> None:
    """What is done with a file of a stranger before any runtime sees it."""
    from aanet.engines.foreign.files import is_foreign, read_network_file
    from aanet.engines.foreign.tensorflow_graph import without_tiles

    path = _file(folder, f"a{suffix}", data)
    if suffix == ".xml":
        _file(folder, "a.bin", b"weights")
    if is_foreign(path) and suffix == ".pb":
        assert without_tiles(read_network_file(path).content)
    elif is_foreign(path):
        assert read_network_file(path).digest


def _network_spec(data: bytes, folder: Path) -> None:
    from aanet.engines.foreign.spec import ForeignSpec, read_table

    table = read_table(_file(folder, "a.toml", data))
    spec = ForeignSpec.from_table(table, "It")
    assert ForeignSpec.from_table(spec.to_table(), "It") == spec


def _checkpoint(changed: str, data: bytes, folder: Path) -> None:
    """A checkpoint whose digests are those of the changed file, as another program may write it."""
    from aanet.training import checkpoint

    files = {**_checkpoint_files(), changed: data}
    with contextlib.suppress(ValueError, RecursionError, TypeError, AttributeError):
        facts = json.loads(files[checkpoint.FACTS])
        if changed != checkpoint.FACTS:
            facts["files"][changed] = hashlib.sha256(data).hexdigest()
        facts.pop("sha256", None)
        files[checkpoint.FACTS] = json.dumps({**facts, "sha256": checkpoint._digest(facts)}).encode()
    for name, content in files.items():
        _file(folder, name, content)
    checkpoint.best_checkpoint(folder.parent)
    checkpoint.load_checkpoint(folder, "aanet")


def _once(make: Callable[[], Any]) -> Callable[[], Any]:
    kept: list[Any] = []

    def get() -> Any:
        if not kept:
            kept.append(make())
        return kept[0]

    return get


def _networks(name: str) -> Any:
    from fuzz import valid_networks

    return getattr(valid_networks, name)()


_openvino_files = _once(partial(_networks, "openvino_files"))
_checkpoint_files = _once(partial(_networks, "checkpoint_files"))


def _texts(*contents: str) -> Callable[[], list[bytes]]:
    return lambda: [content.encode() for content in contents]


def _all_images() -> list[bytes]:
    kinds = (".png", ".jpg", ".bmp", ".tif", ".webp", ".ppm")
    return [content for kind in kinds for content in valid.images(kind)] + [valid.palette_png()]


def _all_calibrations() -> list[bytes]:
    texts = _texts(valid.KITTI, valid.KITTI_RAW, valid.MIDDLEBURY, valid.CAMERA, valid.KALIBR)()
    return (
        texts
        + valid.matrices()
        + [content for suffix in (".yml", ".xml", ".json") for content in valid.storages(suffix)]
    )


KINDS: dict[str, Kind] = {
    "image.png": Kind(
        "images",
        lambda: [*valid.images(".png"), valid.palette_png()],
        partial(_image, ".png"),
    ),
    "image.jpg": Kind("images", partial(valid.images, ".jpg"), partial(_image, ".jpg")),
    "progressive.jpg": Kind(
        "images", partial(valid.pictures, "JPEG", progressive=True), partial(_image, ".jpg")
    ),
    "restarts.jpg": Kind(
        "images", partial(valid.pictures, "JPEG", restart_marker_blocks=2), partial(_image, ".jpg")
    ),
    "image.gif": Kind("images", partial(valid.pictures, "GIF"), partial(_image, ".png")),
    **{
        f"image{suffix}": Kind("images", partial(valid.images, suffix), partial(_image, suffix))
        for suffix in (".bmp", ".tif", ".webp", ".ppm")
    },
    **{
        f"disparity{suffix}": Kind("maps", partial(valid.disparities, suffix), partial(_disparity, suffix))
        for suffix in (".png", ".pfm", ".npy", ".npz")
    },
    **{
        f"depth{suffix}": Kind("maps", partial(valid.depths, suffix), partial(_depth, suffix))
        for suffix in (".png", ".npy")
    },
    "points.ply": Kind("maps", valid.point_clouds, _points),
    "kitti.txt": Kind("calibrations", _texts(valid.KITTI, valid.KITTI_RAW), _calibration),
    "middlebury.txt": Kind("calibrations", _texts(valid.MIDDLEBURY), _calibration),
    "ros.yaml": Kind("calibrations", _texts(valid.ROS), _calibration),
    "kalibr.yaml": Kind("calibrations", _texts(valid.KALIBR), _calibration),
    "calibration.npz": Kind("calibrations", valid.matrices, _calibration),
    "camera.json": Kind("calibrations", _texts(valid.CAMERA), _calibration),
    **{
        f"opencv{suffix}": Kind("calibrations", partial(valid.storages, suffix), _calibration)
        for suffix in (".yml", ".xml", ".json")
    },
    "upload-image": Kind("uploads", _all_images, _upload),
    "upload-calibration": Kind("uploads", _all_calibrations, _uploaded_calibration),
    "pairs.csv": Kind("lists", _texts(valid.TABLE), _table),
    "recipe.toml": Kind("lists", _texts(valid.RECIPE), _recipe),
    "video.avi": Kind("lists", valid.videos, _video),
    "spec.toml": Kind("foreign", _texts(valid.NETWORK_SPEC), _network_spec),
    "foreign.pb": Kind("foreign", partial(_networks, "frozen_graphs"), partial(_foreign, ".pb")),
    "foreign.onnx": Kind("foreign", partial(_networks, "foreign_files"), partial(_foreign, ".onnx")),
    "foreign.xml": Kind("foreign", _texts(valid.NETWORK_XML), partial(_foreign, ".xml")),
    "weights.safetensors": Kind(
        "weights", partial(_networks, "weights"), partial(_weights, ".safetensors"), False
    ),
    "weights.pth": Kind("weights", partial(_networks, "pickles"), partial(_weights, ".pth"), False),
    **{
        f"checkpoint-{name}": Kind(
            "weights", lambda name=name: [_checkpoint_files()[name]], partial(_checkpoint, name)
        )
        for name in ("facts.json", "state.pt", "weights.safetensors")
    },
    "network.onnx": Kind("exported", partial(_networks, "onnx_files"), _onnx),
    "network.xml": Kind("exported", lambda: [_openvino_files()[0]], partial(_openvino, ".xml")),
    "network.bin": Kind("exported", lambda: [_openvino_files()[1]], partial(_openvino, ".bin")),
}
