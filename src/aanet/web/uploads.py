"""What a client sends, checked before it costs anything: size, kind and pixels by the file's own header."""

from __future__ import annotations

import io
import os
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import PIL.Image
from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from aanet.errors import AanetError
from aanet.geometry.calibration import StereoRectifier, load_calibration
from aanet.geometry.camera import StereoCamera
from aanet.io.images import AnyImage, decode_image
from aanet.web.errors import ServiceError, unusable

IMAGE_KINDS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "PPM")
MAX_CALIBRATION_BYTES = 256_000
Calibration = StereoCamera | StereoRectifier
_PARTS = {"left": "left image", "right": "right image", "calib": "calibration"}


@dataclass(frozen=True)
class UploadedPair:
    """Two encoded images of one size, and how they were taken if the client said so."""

    left: bytes
    right: bytes
    width: int
    height: int
    calibration: Calibration | None = None

    @property
    def camera(self) -> StereoCamera | None:
        """The geometry of the (rectified) images."""
        return None if self.calibration is None else camera_of(self.calibration)

    def decode(self) -> tuple[AnyImage, AnyImage]:
        """The images, rectified if the calibration is that of a raw pair."""
        try:
            left, right = (
                decode_image(data, f"The {side} image")
                for data, side in ((self.left, "left"), (self.right, "right"))
            )
        except AanetError as error:
            raise unusable("damaged_image", str(error)) from None
        if left.shape[:2] != (self.height, self.width) or right.shape[:2] != (self.height, self.width):
            raise unusable("damaged_image", "An image has another size than its header says.")
        if isinstance(self.calibration, StereoRectifier):
            return self.calibration(left, right)
        return left, right


async def read_pair(request: Request, max_pixels: int) -> UploadedPair:
    """Read the multipart form; every mistake in it is one sentence."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        message = "Send the images as multipart/form-data with the parts left and right."
        raise ServiceError(415, "not_multipart", message)
    try:
        async with request.form(max_files=len(_PARTS), max_fields=0) as form:
            parts = {name: await _content(name, value) for name, value in form.multi_items()}
    except HTTPException as error:  # what Starlette makes of a form that it cannot parse
        message = f"The multipart form cannot be read: {str(error.detail).rstrip('.').lower()}."
        raise ServiceError(400, "damaged_form", message) from None
    missing = [name for name in ("left", "right") if not parts.get(name)]
    if missing:
        raise unusable("missing_image", f"The form has no file in its part {' and '.join(missing)}.")
    size = _size("left", parts["left"], max_pixels)
    if size != _size("right", parts["right"], max_pixels):
        other = _size("right", parts["right"], max_pixels)
        raise unusable(
            "different_sizes",
            f"The left image has {size[0]}×{size[1]} pixels, the right one {other[0]}×{other[1]}; "
            "a rectified pair has one size.",
        )
    calibration = read_calibration(parts["calib"], size) if parts.get("calib") else None
    return UploadedPair(parts["left"], parts["right"], *size, calibration)


async def _content(name: str, value: UploadFile | str) -> bytes:
    if name not in _PARTS:
        raise unusable("unknown_part", f"The form has a part that is not one of {', '.join(_PARTS)}.")
    if isinstance(value, str):
        raise unusable("not_a_file", f"The part {name} must be a file (with a filename), not a text.")
    return await value.read()


def _size(side: str, data: bytes, max_pixels: int) -> tuple[int, int]:
    """Width and height from the header; nothing is decoded, so nothing can unfold in memory."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", PIL.Image.DecompressionBombWarning)
            with PIL.Image.open(io.BytesIO(data), formats=IMAGE_KINDS) as header:
                width, height = header.size
    except (PIL.Image.DecompressionBombWarning, PIL.Image.DecompressionBombError):
        raise _too_large(side, max_pixels) from None
    except Exception:  # whatever a hostile file does to the parser, it is not an image that we know
        kinds = ", ".join(IMAGE_KINDS)
        message = f"The {side} image is none by its content; expected {kinds}."
        raise ServiceError(415, "not_an_image", message) from None
    if width * height > max_pixels:
        raise _too_large(side, max_pixels)
    if not width or not height:
        raise unusable("damaged_image", f"The {side} image has no pixels.")
    return width, height


def _too_large(side: str, max_pixels: int) -> ServiceError:
    limit = f"{max_pixels / 1e6:g} megapixels"
    message = f"The {side} image has more than the {limit} that this server takes; send a smaller one."
    return ServiceError(413, "too_many_pixels", message)


def read_calibration(data: bytes, size: tuple[int, int]) -> Calibration:
    """A calibration of any kind that `load_calibration` knows, for images of this width and height."""
    if len(data) > MAX_CALIBRATION_BYTES:
        limit = f"{MAX_CALIBRATION_BYTES // 1000} kB"
        raise ServiceError(413, "calibration_too_large", f"A calibration has at most {limit}.")
    with tempfile.TemporaryDirectory(prefix="aanet-") as folder:
        path = Path(folder) / "The calibration"  # the name is what messages begin with
        path.write_bytes(data)
        try:
            calibration = load_calibration(path, size=size)
        except AanetError as error:
            raise unusable("wrong_calibration", str(error).replace(folder + os.sep, "")) from None
        except Exception:  # the parsers were written for honest files
            raise unusable("wrong_calibration", "The calibration cannot be read.") from None
    camera = camera_of(calibration)
    if (camera.width or size[0], camera.height or size[1]) != size:
        raise unusable(
            "wrong_calibration",
            f"The calibration is for images of {camera.width}×{camera.height} pixels; "
            f"these have {size[0]}×{size[1]}.",
        )
    return calibration


def camera_of(calibration: Calibration) -> StereoCamera:
    """The geometry of the images after rectification, if they need any."""
    return calibration.camera if isinstance(calibration, StereoRectifier) else calibration
