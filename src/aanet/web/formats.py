"""From a result to the bytes of a response."""

from __future__ import annotations

import dataclasses
import io
import os
import tempfile
from enum import Enum
from typing import Any

import numpy as np
from pydantic import BaseModel, Field

from aanet.errors import AanetError
from aanet.result import NEEDS_CAMERA, NEEDS_CHECK, StereoResult
from aanet.typing import FloatMap
from aanet.web.errors import unusable


class Format(str, Enum):
    """What a client can ask for."""

    PNG16 = "png16"
    PFM = "pfm"
    NPY = "npy"
    NPZ = "npz"
    COLOR = "color"
    DEPTH = "depth"
    DEPTH_COLOR = "depth_color"
    PLY = "ply"
    CONFIDENCE = "confidence"
    OCCLUSION = "occlusion"
    RIGHT_DISPARITY = "right_disparity"
    PANEL = "panel"
    JSON = "json"


# What `StereoResult.save` calls it, and the media type; NPZ and JSON are made here.
_SAVED = {
    Format.PNG16: ("disparity.png", "image/png"),
    Format.PFM: ("disparity.pfm", "image/x-portable-floatmap"),
    Format.NPY: ("disparity.npy", "application/octet-stream"),
    Format.COLOR: ("color.png", "image/png"),
    Format.DEPTH: ("depth.png", "image/png"),
    Format.DEPTH_COLOR: ("depth_color.png", "image/png"),
    Format.PLY: ("ply.ply", "application/x-ply"),
    Format.CONFIDENCE: ("confidence.png", "image/png"),
    Format.OCCLUSION: ("occlusion.png", "image/png"),
    Format.RIGHT_DISPARITY: ("right_disparity.png", "image/png"),
    Format.PANEL: ("panel.png", "image/png"),
}


class Spread(BaseModel):
    """The known values of a map."""

    minimum: float
    median: float
    maximum: float


class Camera(BaseModel):
    """A rectified camera; `docs/conventions.md` defines every name."""

    fx: float
    cx: float
    cy: float
    baseline_m: float
    width: int | None
    height: int | None
    cx_right: float | None
    fy: float | None


class Summary(BaseModel):
    """What `format=json` answers."""

    model: str
    engine: str
    width: int
    height: int
    seconds: float = Field(description="What matching took, without decoding and encoding.")
    warnings: list[str] = Field(description="Plain sentences about the pair and the result.")
    disparity_px: Spread | None
    depth_m: Spread | None = Field(description="Null without a calibration.")
    mean_confidence: float
    occluded_share: float | None = Field(description="Null unless check=true.")
    camera: Camera | None = Field(
        description="Of the images as matched: after rectification, if there was any."
    )


@dataclasses.dataclass(frozen=True)
class Encoded:
    """The body of a response."""

    data: bytes
    media_type: str
    file_name: str


def require_possible(wanted: Format, has_camera: bool, check: bool) -> None:
    """Refuse at once what would fail after the matching."""
    kind = _SAVED[wanted][0].partition(".")[0] if wanted in _SAVED else ""
    if kind in NEEDS_CAMERA and not has_camera:
        raise unusable("needs_calibration", f"format={wanted.value} needs the part calib.")
    if kind in NEEDS_CHECK and not check:
        raise unusable("needs_check", f"format={wanted.value} needs check=true.")


def encode(result: StereoResult, wanted: Format) -> Encoded:
    """The result in the wanted format."""
    if wanted is Format.JSON:
        return Encoded(summarize(result).model_dump_json().encode(), "application/json", "result.json")
    if wanted is Format.NPZ:
        return Encoded(_all_arrays(result), "application/zip", "result.npz")
    output, media_type = _SAVED[wanted]
    with tempfile.TemporaryDirectory(prefix="aanet-") as folder:
        try:
            (path,) = result.save(folder, output)
        except AanetError as error:
            raise unusable("not_in_this_format", str(error).replace(folder + os.sep, "")) from None
        return Encoded(path.read_bytes(), media_type, path.name if wanted is not Format.PLY else "points.ply")


def summarize(result: StereoResult) -> Summary:
    """The result in numbers."""
    height, width = result.disparity.shape
    return Summary(
        model=result.model,
        engine=result.engine,
        width=width,
        height=height,
        seconds=result.seconds,
        warnings=result.warnings,
        disparity_px=_spread(result.disparity),
        depth_m=None if result.camera is None else _spread(result.depth()),
        mean_confidence=float(result.confidence.mean()),
        occluded_share=None if result.occlusion is None else float(result.occlusion.mean()),
        camera=describe_camera(result),
    )


def describe_camera(result: StereoResult) -> Camera | None:
    """The geometry of the result, if it has one."""
    return None if result.camera is None else Camera(**dataclasses.asdict(result.camera))


def _spread(values: FloatMap) -> Spread | None:
    known = values[np.isfinite(values)]
    if not known.size:
        return None
    return Spread(minimum=float(known.min()), median=float(np.median(known)), maximum=float(known.max()))


def _all_arrays(result: StereoResult) -> bytes:
    """Everything that was computed; not compressed, which would take longer than sending it."""
    arrays: dict[str, Any] = {
        "disparity": result.disparity,
        "confidence": result.confidence,
        "left": result.left,
        "occlusion": result.occlusion,
        "right_disparity": result.right_disparity,
    }
    buffer = io.BytesIO()
    np.savez(
        buffer, allow_pickle=False, **{name: array for name, array in arrays.items() if array is not None}
    )
    return buffer.getvalue()
