"""The parts of the OpenAPI document that the code cannot say by itself."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from aanet.outputs import OUTPUTS
from aanet.web.formats import Summary

DESCRIPTION = """\
A rectified pair of images in; disparity, depth in meters and a point cloud out.

    curl -F left=@left.png -F right=@right.png -o disparity.pfm \\
        "http://127.0.0.1:8000/api/v1/disparity?format=disparity.pfm"

Every error is `{"code": …, "message": …}`: a word for programs and one sentence for people.
503 has `Retry-After`: the same request may succeed then."""


class Problem(BaseModel):
    """Every error."""

    code: str = Field(examples=["unknown_model"])
    message: str = Field(examples=["There is no matcher of that name here; known: aanet, sgbm."])


class ModelFacts(BaseModel):
    """One matcher that the server offers."""

    name: str = Field(examples=["sgbm"])
    default: bool = Field(description="Whether requests get it that name no model.")
    max_disparity: int | None = Field(
        description="Pixels it searches; null until it is first used.", examples=[192]
    )
    upscale_to: int = Field(
        description="The width that narrower images are upscaled to before matching, unless a scale "
        "is given; 0 if they are not, and until it is first used.",
        examples=[0],
    )
    max_upscale: float = Field(description="How many times at most.", examples=[1.5])
    engine: str | None = Field(description="What computes it; null until it is first used.")
    seconds_per_megapixel: float | None = Field(
        description="Of late; null until it is first used.", examples=[1.9]
    )
    taken: int = Field(description="Requests that are worked on or wait.", examples=[0])
    slots: int = Field(description="How many there can be; more are refused with 503.", examples=[9])


class ModelList(BaseModel):
    """What `GET /models` answers, with the limits of this server."""

    models: list[ModelFacts]
    max_pixels: int = Field(examples=[8_000_000])
    max_upload_bytes: int = Field(examples=[64_000_000])
    timeout: float = Field(description="Seconds that a request may take.", examples=[120.0])


class Status(BaseModel):
    """How the server is."""

    status: str = Field(examples=["ok"])


_BINARY = {"type": "string", "format": "binary"}

REQUEST_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["left", "right"],
                "additionalProperties": False,
                "properties": {
                    "left": {
                        **_BINARY,
                        "description": "PNG, JPEG, TIFF, WebP, BMP, PPM or PGM; 8 or 16 bits.",
                    },
                    "right": {**_BINARY, "description": "Of the same size; rows of both images correspond."},
                    "calib": {
                        **_BINARY,
                        "description": "KITTI, Middlebury, an OpenCV FileStorage (raw pairs are rectified) "
                        "or our JSON.  Gives meters.",
                    },
                },
            },
            "encoding": {
                "left": {"contentType": "image/png, image/jpeg, image/tiff, image/webp, image/bmp"},
                "right": {"contentType": "image/png, image/jpeg, image/tiff, image/webp, image/bmp"},
                "calib": {"contentType": "text/plain, application/json, application/xml, application/yaml"},
            },
        }
    },
}


def _header(description: str, example: str, kind: str = "string") -> dict[str, Any]:
    return {"description": description, "schema": {"type": kind}, "example": example}


_ANSWER_HEADERS = {
    "Aanet-Model": _header("The network.", "sgbm"),
    "Aanet-Engine": _header("What computed it.", "OpenCV 5.0.0, SGBM"),
    "Aanet-Warnings": _header("JSON list of plain sentences.", "[]"),
    "Aanet-Camera": _header("JSON of the camera, or null.", "null"),
    "Server-Timing": _header(
        "Milliseconds in the queue, and for decoding, matching and encoding.",
        "queue;dur=0.1, decode;dur=9.2, match;dur=812.0, encode;dur=14.1",
    ),
    "Content-Disposition": _header("A name for the file.", 'attachment; filename="disparity.png"'),
}
_SUMMARY_EXAMPLE = {
    "model": "sgbm",
    "engine": "OpenCV 5.0.0, SGBM",
    "width": 741,
    "height": 500,
    "seconds": 0.81,
    "warnings": [],
    "notes": [],
    "disparity_px": {"minimum": 5.1, "median": 31.6, "maximum": 63.9},
    "depth_m": {"minimum": 2.02, "median": 3.06, "maximum": 5.3},
    "mean_confidence": 0.83,
    "occluded_share": 0.08,
    "camera": {
        "fx": 994.978,
        "cx": 311.193,
        "cy": 254.877,
        "baseline_m": 0.193,
        "width": 741,
        "height": 500,
        "cx_right": 342.279,
        "fy": 994.978,
    },
}

_PROBLEMS = {
    400: ("The form is damaged.", "damaged_form", "The multipart form cannot be read: missing boundary."),
    401: (
        "The token is missing or wrong.",
        "unauthorized",
        "This server wants a token (Authorization: Bearer …).",
    ),
    408: ("The upload took too long.", "too_slow", "The upload took longer than 120 seconds."),
    413: (
        "Too many bytes or pixels.",
        "too_many_pixels",
        "The left image has more than the 8 megapixels that this server takes; send a smaller one.",
    ),
    415: ("Not a form, or a file of another kind.", "not_an_image", "The left image is none by its content."),
    422: (
        "Cannot be used: a parameter, the sizes, the calibration, the model.",
        "unknown_model",
        "There is no matcher of that name here; known: aanet, sgbm.",
    ),
    500: ("A mistake of ours.", "internal", "Something went wrong inside the server; its log says what."),
    503: ("All slots are taken, or time is up.", "full", "All 9 slots of this matcher are taken."),
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of an operation."""
    described: dict[int | str, dict[str, Any]] = {}
    for status in statuses:
        description, code, message = _PROBLEMS[status]
        example = {"code": code, "message": message}
        described[status] = {
            "model": Problem,
            "description": description,
            "content": {"application/json": {"example": example}},
        }
        if status == 503:
            described[status]["headers"] = {"Retry-After": _header("Seconds.", "2", "integer")}
    return described


def responses() -> dict[int | str, dict[str, Any]]:
    """All responses of `POST /disparity`."""
    types = {each.media_type for output in OUTPUTS.values() for each in output.types}
    content: dict[str, Any] = {kind: {"schema": _BINARY} for kind in sorted(types - {"application/json"})}
    content["application/json"] = {"example": _SUMMARY_EXAMPLE}
    success = {
        "description": "The result in the asked format.",
        "model": Summary,
        "headers": _ANSWER_HEADERS,
        "content": content,
    }
    return {200: success, **problems(400, 408, 413, 415, 422, 500, 503)}
