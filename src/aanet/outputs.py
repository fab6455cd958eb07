"""The table of outputs that a result can be saved as.

It defines what `StereoResult.save`, `aanet predict --save` and the HTTP parameter `format` accept.  Encoders
import what they need when they are called, because the help of the command line lists the table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from aanet.errors import InputError, OptionError, did_you_mean
from aanet.inference.save_options import SaveOptions

if TYPE_CHECKING:
    from aanet.geometry.camera import StereoCamera
    from aanet.typing import FloatMap, Image, Mask


class FileType(NamedTuple):
    """A file format: suffix and media type."""

    suffix: str
    media_type: str


PNG = FileType(".png", "image/png")
JPEG = FileType(".jpg", "image/jpeg")
PFM = FileType(".pfm", "image/x-portable-floatmap")
NPY = FileType(".npy", "application/octet-stream")
NPZ = FileType(".npz", "application/zip")
PLY = FileType(".ply", "application/x-ply")
JSON = FileType(".json", "application/json")
VIDEO_SUFFIX = ".mp4"


class Result(Protocol):
    """What the encoders need of a result; `aanet.StereoResult` documents the fields."""

    disparity: FloatMap
    confidence: FloatMap
    left: Image
    right: Image | None
    right_disparity: FloatMap | None
    occlusion: Mask | None
    camera: StereoCamera | None
    model: str

    def depth(self, *, min_confidence: float, max_depth: float) -> FloatMap:
        """Meters along the optical axis, [H, W]."""

    def cloud(
        self, *, min_confidence: float, max_depth: float, flying_pixels: bool
    ) -> tuple[FloatMap, Image]:
        """Points [N, 3] in meters and their RGB [N, 3]."""

    def summary(self) -> dict[str, Any]:
        """The result in numbers, for JSON."""


@dataclass(frozen=True)
class Output:
    """One thing that a result can be saved as.

    Attributes:
        types: The supported file formats; the first is the default.
        content: What the file contains, in a few words.
        encode: Returns the bytes of the file, from a result, the suffix of one of `types`, and the options.
        picture: Returns the picture that the file contains, which can also be a frame of a video.
        needs: What the result must have: a camera, or the left-right check.
        stem: Name of the file, if it is not the name of the output.
    """

    types: tuple[FileType, ...]
    content: str
    encode: Callable[[Result, str, SaveOptions], bytes]
    needs: Literal["camera", "check"] | None = None
    stem: str | None = None
    picture: Callable[[Result, SaveOptions], Image] | None = None


class Chosen(NamedTuple):
    """An output in one of its formats, as `find` returns it."""

    output: Output
    file_name: str
    type: FileType


def find(wanted: str) -> Chosen:
    """Look up an output such as "disparity" (in its first format) or "disparity.pfm"."""
    if not isinstance(wanted, str):
        raise InputError(f"Outputs are given as separate strings, such as 'color'; got {wanted!r}.")
    name, _, suffix = wanted.partition(".")
    if name not in OUTPUTS:
        hint = did_you_mean(name, OUTPUTS)
        raise InputError(f"There is no output {wanted!r}{hint}; known: {', '.join(OUTPUTS)}.")
    output = OUTPUTS[name]
    types = {each.suffix: each for each in output.types}
    chosen = types.get(f".{suffix}") if suffix else output.types[0]
    if chosen is None:
        raise InputError(f"{name} can be saved as {', '.join(types)}; got {wanted!r}.")
    return Chosen(output, (output.stem or name) + chosen.suffix, chosen)


def find_output(wanted: str) -> Output:
    """Look up an output as `find` does, or one that is saved as a video, such as "color.mp4"."""
    name, _, suffix = wanted.partition(".")
    if f".{suffix}" != VIDEO_SUFFIX or name not in OUTPUTS:
        return find(wanted).output
    if OUTPUTS[name].picture is None:
        videos = ", ".join(
            known + VIDEO_SUFFIX for known, each in OUTPUTS.items() if each.picture is not None
        )
        raise InputError(f"{name} cannot be saved as a video; {videos} can.")
    return OUTPUTS[name]


def require(wanted: str, has_camera: bool, checked: bool) -> None:
    """Refuse an output that needs a camera or the left-right check, if there is none."""
    needs = find_output(wanted).needs
    if needs == "camera" and not has_camera:
        raise OptionError(f"Saving {wanted} needs a calibration", "give {calibration}")
    if needs == "check" and not checked:
        raise OptionError(f"Saving {wanted} needs the left-right check", "give {check}")


def encode(result: Result, wanted: str, options: SaveOptions | None = None) -> bytes:
    """Return the bytes of the file of an output."""
    chosen = find(wanted)
    checked = result.occlusion is not None and result.right_disparity is not None
    require(wanted, result.camera is not None, checked)
    return chosen.output.encode(result, chosen.type.suffix, options or SaveOptions())


def for_suffix(suffix: str) -> str | None:
    """The first output that can be saved with this suffix, such as "disparity.pfm"; None if there is none."""
    matches = (
        name + suffix
        for name, output in OUTPUTS.items()
        if any(each.suffix == suffix for each in output.types)
    )
    return next(matches, None)


def spellings() -> list[str]:
    """All names that `find` accepts."""
    return [
        name + suffix
        for name, output in OUTPUTS.items()
        for suffix in ("", *(each.suffix for each in output.types))
    ]


def describe(camera: str, check: str) -> list[str]:
    """One phrase per output; `camera` and `check` are the options that provide what some outputs need."""
    needs = {"camera": f", needs {camera}", "check": f", needs {check}", None: ""}
    return [
        f"{name} ({', '.join(each.suffix[1:] for each in output.types)}): "
        f"{output.content}{needs[output.needs]}"
        for name, output in OUTPUTS.items()
    ]


def _disparity(result: Result, suffix: str, _options: SaveOptions) -> bytes:
    from aanet.io.disparity import encode_disparity

    return encode_disparity(result.disparity, suffix)


def _right_disparity(result: Result, suffix: str, _options: SaveOptions) -> bytes:
    from aanet.io.disparity import encode_disparity

    assert result.right_disparity is not None
    return encode_disparity(result.right_disparity, suffix)


def _image(picture: Callable[[Result, SaveOptions], Image]) -> Callable[[Result, str, SaveOptions], bytes]:
    """An encoder of a picture."""

    def encoder(result: Result, suffix: str, options: SaveOptions) -> bytes:
        from aanet.io.images import encode_image

        return encode_image(picture(result, options), suffix)

    return encoder


def _color(result: Result, options: SaveOptions) -> Image:
    from aanet import viz

    low, high = disparity_range(result, options)
    return viz.with_scale_bar(viz.colorize_disparity(result.disparity, low, high), low, high, "px")


def disparity_range(result: Result, options: SaveOptions) -> tuple[float, float]:
    """The range of the colors in pixels: the given one, or that of the result."""
    from aanet import viz

    chosen = options.color_range()
    if chosen is None:
        return viz.value_range(result.disparity)
    if chosen.unit == "px":
        return chosen.low, chosen.high
    if result.camera is None:
        raise InputError("A range of colors in meters needs a calibration; give it in pixels, such as 5:80.")
    low, high = (
        result.camera.fx * result.camera.baseline_m / depth - result.camera.doffs
        for depth in (chosen.high, chosen.low)
    )
    return low, high


def _depth(result: Result, suffix: str, options: SaveOptions) -> bytes:
    from aanet.io.depth import encode_depth

    return encode_depth(_filtered_depth(result, options), suffix)


def _filtered_depth(result: Result, options: SaveOptions) -> FloatMap:
    return result.depth(min_confidence=options.min_confidence, max_depth=options.max_depth)


def _depth_color(result: Result, options: SaveOptions) -> Image:
    from aanet import viz

    depth, chosen = _filtered_depth(result, options), options.color_range()
    low, high = viz.value_range(depth) if chosen is None else chosen[:2]
    if chosen is not None and chosen.unit == "px":
        assert result.camera is not None
        scale, doffs = result.camera.fx * result.camera.baseline_m, result.camera.doffs
        # The far end of a scale that includes infinity is the depth of one pixel.
        low, high = (scale / max(disparity + doffs, 1.0) for disparity in (chosen.high, chosen.low))
    return viz.with_scale_bar(viz.colorize_depth(depth, low, high), low, high, "m")


def _ply(result: Result, _suffix: str, options: SaveOptions) -> bytes:
    from aanet.io.points import encode_ply

    return encode_ply(
        *result.cloud(
            min_confidence=options.min_confidence,
            max_depth=options.max_depth,
            flying_pixels=options.flying_pixels,
        )
    )


def _confidence(result: Result, suffix: str, _options: SaveOptions) -> bytes:
    from aanet.io.images import encode_image
    from aanet.io.maps import encode_npy

    return encode_npy(result.confidence) if suffix == ".npy" else encode_image(_gray(result), suffix)


def _gray(result: Result) -> Image:
    import numpy as np

    return np.rint(result.confidence * 255).astype(np.uint8)


def _occlusion(result: Result, suffix: str, _options: SaveOptions) -> bytes:
    import numpy as np

    from aanet.io.images import encode_image

    assert result.occlusion is not None
    return encode_image(result.occlusion.astype(np.uint8) * 255, suffix)


def _panel(result: Result, options: SaveOptions) -> Image:
    import numpy as np

    from aanet import viz
    from aanet.io.images import as_rgb8

    colored = viz.colorize_disparity(result.disparity, *disparity_range(result, options))
    images = [result.left, colored, as_rgb8(_gray(result))]
    titles = ["Left image", f"Disparity ({result.model})", "Confidence"]
    if result.occlusion is not None:
        images.append(np.where(result.occlusion[..., None], np.uint8(0), colored).astype(np.uint8))
        titles.append("Disparity, occlusions black")
    return viz.panel(images, titles, columns=2 if len(images) == 4 else 3)


def _left(result: Result, suffix: str, _options: SaveOptions) -> bytes:
    from aanet.io.images import encode_image

    return encode_image(result.left, suffix)


def _right(result: Result, suffix: str, _options: SaveOptions) -> bytes:
    from aanet.io.images import encode_image

    if result.right is None:
        raise InputError("This result was made without its right image, which cannot be saved.")
    return encode_image(result.right, suffix)


def _camera(result: Result, _suffix: str, _options: SaveOptions) -> bytes:
    assert result.camera is not None
    return result.camera.to_json().encode()


def _arrays(result: Result, _suffix: str, _options: SaveOptions) -> bytes:
    from aanet.io.maps import encode_npz

    names = ("disparity", "confidence", "left", "occlusion", "right_disparity")
    arrays = {name: getattr(result, name) for name in names if getattr(result, name) is not None}
    return encode_npz(arrays, compressed=False)  # compressing would take longer than writing it


def _summary(result: Result, _suffix: str, _options: SaveOptions) -> bytes:
    return json.dumps(result.summary()).encode()


_MAPS: Sequence[FileType] = (PNG, PFM, NPY, NPZ)

OUTPUTS: dict[str, Output] = {
    "disparity": Output(
        (*_MAPS,), "pixels; the PNG has 16 bits, 256 times the value, 0 is unknown", _disparity
    ),
    "color": Output((PNG, JPEG), "the disparity in color, with a scale", _image(_color), picture=_color),
    "depth": Output((PNG, NPY), "meters; the PNG has 16 bits, in millimeters", _depth, needs="camera"),
    "depth_color": Output(
        (PNG, JPEG), "the depth in color, with a scale", _image(_depth_color), "camera", picture=_depth_color
    ),
    "ply": Output((PLY,), "colored points in meters", _ply, needs="camera", stem="points"),
    "confidence": Output((PNG, NPY), "0 to 1; the PNG has 255 times the value", _confidence),
    "occlusion": Output((PNG,), "255 where the left-right check fails", _occlusion, needs="check"),
    "right_disparity": Output((*_MAPS,), "on the grid of the right image", _right_disparity, needs="check"),
    "panel": Output(
        (PNG, JPEG), "image, disparity and confidence side by side", _image(_panel), picture=_panel
    ),
    "left": Output((PNG, JPEG), "the left image, rectified if the pair was raw", _left),
    "right": Output((PNG, JPEG), "the right image, rectified if the pair was raw", _right),
    "arrays": Output((NPZ,), "all maps and the left image", _arrays),
    "summary": Output((JSON,), "ranges, confidence, warnings and camera", _summary),
    "camera": Output((JSON,), "the camera of the rectified pair, as a calibration", _camera, needs="camera"),
}
