"""The parts of the OpenAPI document that are not generated from the code."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from aanet.outputs import OUTPUTS
from aanet.web.formats import Summary

DESCRIPTION = """\
Computes disparity, depth in meters and a point cloud from a rectified pair of images.

    curl -F left=@left.png -F right=@right.png -o disparity.pfm \\
        "http://127.0.0.1:8000/api/v1/disparity?format=disparity.pfm"

Every error is `{"code": …, "message": …}`, with a code for programs and a sentence for people.
A response with status 503 has a `Retry-After` header, after which the same request may succeed.
Unknown parameters are refused, because they are probably misspelled."""

MATCHING, LIVE, OPERATION = "Matching", "Live source", "Operation"
TAGS = [
    {"name": MATCHING, "description": "Pairs of images, and the matchers that this server has."},
    {"name": LIVE, "description": "A camera, network stream or video that this server shows."},
    {"name": OPERATION, "description": "Probes for load balancers, and counters. Probes need no token."},
]
SECURITY_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "A server with a token requires it in every request but probes: "
    "`Authorization: Bearer TOKEN`. Other requests get the status 401.",
}


class Problem(BaseModel):
    """An error response."""

    code: str = Field(examples=["unknown_model"])
    message: str = Field(examples=["This server has no matcher of that name; it has aanet, sgbm."])


class ModelFacts(BaseModel):
    """One matcher that the server offers."""

    name: str = Field(examples=["sgbm"])
    default: bool = Field(description="Whether it is used for requests without a model.")
    max_disparity: int | None = Field(
        description="Search range in pixels; null until it is first used.", examples=[192]
    )
    upscale_to: int = Field(
        description="The width to which narrower images are upscaled before matching, unless a scale is "
        "given; 0 without upscaling, and until it is first used.",
        examples=[0],
    )
    max_upscale: float = Field(description="Maximum upscaling factor.", examples=[1.5])
    engine: str | None = Field(description="The engine that runs it; null until it is first used.")
    seconds_per_megapixel: float | None = Field(
        description="Running mean of the matching time; null until it is first used.", examples=[1.9]
    )
    taken: int = Field(description="Number of requests that are running or waiting.", examples=[0])
    slots: int = Field(
        description="Maximum number of such requests; more are refused with status 503.", examples=[9]
    )


class ModelList(BaseModel):
    """The response of `GET /models`: the matchers and limits of this server."""

    models: list[ModelFacts]
    max_pixels: int = Field(examples=[8_000_000])
    max_upload_bytes: int = Field(examples=[64_000_000])
    timeout: float = Field(description="Maximum duration of a request in seconds.", examples=[120.0])
    live: bool = Field(description="Whether the server shows a camera, stream or video: GET /live.")


class Status(BaseModel):
    """The state of the server."""

    status: str = Field(examples=["ok"])


_CALIBRATION_TYPES = "text/plain, application/json, application/xml, application/yaml, application/zip"
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
                    "right": {
                        **_BINARY,
                        "description": "The right image of a rectified pair, of the same size.",
                    },
                    "calib": {
                        **_BINARY,
                        "description": "A calibration, for depth in meters: KITTI, Middlebury, OpenCV, NPZ, "
                        "ROS, Kalibr or aanet's JSON; raw pairs are rectified.",
                    },
                    "calib_right": {
                        **_BINARY,
                        "description": "That of the right camera (ROS), or the extrinsics (OpenCV).",
                    },
                },
            },
            "encoding": {
                "left": {"contentType": "image/png, image/jpeg, image/tiff, image/webp, image/bmp"},
                "right": {"contentType": "image/png, image/jpeg, image/tiff, image/webp, image/bmp"},
                "calib": {"contentType": _CALIBRATION_TYPES},
                "calib_right": {"contentType": _CALIBRATION_TYPES},
            },
        }
    },
}


def _header(description: str, example: str, kind: str = "string") -> dict[str, Any]:
    return {"description": description, "schema": {"type": kind}, "example": example}


ANSWER_HEADERS = {
    "Aanet-Model": _header("The network.", "sgbm"),
    "Aanet-Engine": _header("The engine that ran it.", "OpenCV 5.0.0, SGBM"),
    "Aanet-Warnings": _header("JSON list of warnings about the pair and the result.", "[]"),
    "Aanet-Camera": _header("The camera as JSON, or null.", "null"),
    "Server-Timing": _header(
        "Time in the queue and for decoding, matching and encoding, in milliseconds.",
        "queue;dur=0.1, decode;dur=9.2, match;dur=812.0, encode;dur=14.1",
    ),
    "Content-Disposition": _header("The name of the file.", 'attachment; filename="disparity.png"'),
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
        "This server requires a token (Authorization: Bearer …).",
    ),
    403: (
        "The request comes from a page of another site, which is not allowed to use this server.",
        "foreign_origin",
        "This server does not accept requests from the pages of other sites (see --allow-origin).",
    ),
    408: ("The upload took too long.", "too_slow", "The upload took longer than 120 seconds."),
    413: (
        "Too many bytes or pixels.",
        "too_many_pixels",
        "The left image has more than 8 megapixels, the limit of this server; send a smaller image.",
    ),
    415: (
        "The request is not a form, or a file has the wrong type.",
        "not_an_image",
        "The left file is not a supported image (PNG, JPEG, TIFF, WEBP, BMP, PPM).",
    ),
    422: (
        "A parameter, the model, the image sizes or the calibration cannot be used.",
        "unknown_model",
        "This server has no matcher of that name; it has aanet, sgbm.",
    ),
    500: ("An internal error.", "internal", "An internal error occurred; see the server's log."),
    503: ("All slots are taken, or the request timed out.", "full", "All 9 slots of this matcher are taken."),
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error responses of an operation."""
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


def file_response() -> dict[str, Any]:
    """Return the successful response of an operation with a format: a file of any output."""
    types = {each.media_type for output in OUTPUTS.values() for each in output.types}
    content: dict[str, Any] = {kind: {"schema": _BINARY} for kind in sorted(types - {"application/json"})}
    content["application/json"] = {"example": _SUMMARY_EXAMPLE}
    return {"description": "The result in the requested format.", "model": Summary, "content": content}


def responses() -> dict[int | str, dict[str, Any]]:
    """Return all responses of `POST /disparity`."""
    success = {**file_response(), "headers": ANSWER_HEADERS}
    return {200: success, **problems(400, 403, 408, 413, 415, 422, 500, 503)}
