"""The formats of responses: the schema of the summary, and which formats a request can have."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from aanet import outputs
from aanet.errors import InputError
from aanet.inference.save_options import SaveOptions
from aanet.web.errors import unusable


class Spread(BaseModel):
    """The range of the known values of a map."""

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
    """The response with `format=summary`: `StereoResult.summary`."""

    model_config = ConfigDict(extra="forbid")

    model: str
    engine: str
    width: int
    height: int
    seconds: float = Field(description="Matching time, without decoding and encoding.")
    warnings: list[str] = Field(description="Warnings about the pair and the result.")
    notes: list[str] = Field(description="How the images are stored: gray, 16 bits, alpha.")
    disparity_px: Spread | None
    depth_m: Spread | None = Field(description="Null without a calibration.")
    mean_confidence: float
    occluded_share: float | None = Field(description="Null unless check=true.")
    camera: Camera | None = Field(
        description="The camera of the matched images, after rectification if there was any."
    )


def require_possible(wanted: str, has_camera: bool, check: bool) -> None:
    """Refuse a format that would fail after the matching."""
    needs = outputs.find(wanted).output.needs
    if needs == "camera" and not has_camera:
        raise unusable("needs_calibration", f"format={wanted} needs a calibration (the part calib).")
    if needs == "check" and not check:
        raise unusable("needs_check", f"format={wanted} needs check=true.")


def require_known(wanted: str) -> None:
    """Refuse a format that is not in the table of outputs."""
    try:
        outputs.find(wanted)
    except InputError as error:
        raise unusable("wrong_parameter", f"The parameter format has an invalid value: {error}") from None


def save_options(given: dict[str, Any]) -> SaveOptions:
    """The options of these names; None means that one was not given."""
    try:
        return SaveOptions.of({name: value for name, value in given.items() if value is not None})
    except InputError as error:
        raise unusable("wrong_parameter", str(error)) from None
