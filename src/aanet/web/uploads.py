"""Reading uploads; type and size of images are checked by their headers before anything is decoded."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass

import PIL.Image

from aanet.errors import AanetError, ReadError
from aanet.geometry.calibration import parse_calibration
from aanet.geometry.rectification import Calibration
from aanet.io.images import AnyImage, decode_image
from aanet.web.errors import ServiceError, refused, unusable

IMAGE_KINDS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "PPM")
PARTS = ("left", "right", "calib", "calib_right")
MAX_SIDE = 16_384  # pixels; some buffers of the matchers grow with the width alone
MAX_CALIBRATION_BYTES = 256_000
_MAX_HEADER_BYTES = 1_000_000  # that are read to find the size of an image
_MAX_HEADER_READS = 10_000  # a chunk of a PNG takes three, a segment of a JPEG two or three


@dataclass(frozen=True)
class CalibrationOptions:
    """The query parameters about the calibration; `aanet.load_calibration` describes them."""

    unit: str | None = None
    rectified: bool = False
    resized: bool = False


@dataclass(frozen=True)
class UploadedPair:
    """Two encoded images of the same size, with a calibration if the client sent one."""

    left: bytes
    right: bytes
    width: int
    height: int
    calibration: Calibration | None = None

    def decode(self) -> tuple[AnyImage, AnyImage]:
        """Decode both images."""
        try:
            left, right = (
                decode_image(data, f"The {side} image")
                for data, side in ((self.left, "left"), (self.right, "right"))
            )
        except ReadError as error:
            raise unusable("damaged_image", str(error)) from None
        if left.shape[:2] != (self.height, self.width) or right.shape[:2] != (self.height, self.width):
            raise unusable("damaged_image", "The size of an image differs from that in its header.")
        return left, right


def read_pair(
    parts: dict[str, bytes], max_pixels: int, options: CalibrationOptions | None = None
) -> UploadedPair:
    """Check the parts of a form; takes too long for the event loop if a file is hostile."""
    missing = [name for name in ("left", "right") if not parts.get(name)]
    if missing:
        raise unusable("missing_image", f"The form has no file in the part {' and '.join(missing)}.")
    size, other = (_size(side, parts[side], max_pixels) for side in ("left", "right"))
    if size != other:
        raise unusable(
            "different_sizes",
            f"The left image has {size[0]}×{size[1]} pixels and the right {other[0]}×{other[1]}; both images "
            "of a rectified pair must have the same size.",
        )
    calibration = read_calibration(parts, size, options or CalibrationOptions())
    return UploadedPair(parts["left"], parts["right"], *size, calibration)


class _Header(io.BytesIO):
    """The bytes of an image, of which a limited number can be read, in a limited number of steps.

    Reading all the rest at once, as the decoder of WebP does, is one step and costs nothing.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._bytes = self._reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """See `io.BytesIO`."""
        data = super().read(size)
        self._reads += 1
        self._bytes += 0 if size is None or size < 0 else len(data)
        if self._bytes > _MAX_HEADER_BYTES or self._reads > _MAX_HEADER_READS:
            raise ValueError("no image size at the beginning")
        return data


def _size(side: str, data: bytes, max_pixels: int) -> tuple[int, int]:
    """Read width and height from the header, without decoding, to be safe from decompression bombs."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about damage, which the decoder will find
            warnings.simplefilter("error", PIL.Image.DecompressionBombWarning)
            with PIL.Image.open(_Header(data), formats=IMAGE_KINDS) as header:
                width, height = header.size
    except (PIL.Image.DecompressionBombWarning, PIL.Image.DecompressionBombError):
        raise _too_large(side, max_pixels) from None
    except Exception:  # a malicious file can raise any exception
        kinds = ", ".join(IMAGE_KINDS)
        message = f"The {side} file is not a supported image ({kinds})."
        raise ServiceError(415, "not_an_image", message) from None
    if width * height > max_pixels:
        raise _too_large(side, max_pixels)
    if not width or not height:
        raise unusable("damaged_image", f"The {side} image has no pixels.")
    require_side(max(width, height))
    return width, height


def require_side(pixels: float) -> None:
    """Refuse images with a side that is too long, at the scale at which they are matched."""
    if pixels > MAX_SIDE:
        message = f"A side of the images has {pixels:.0f} pixels; the limit is {MAX_SIDE}."
        raise ServiceError(413, "too_many_pixels", message)


def _too_large(side: str, max_pixels: int) -> ServiceError:
    limit = f"{max_pixels / 1e6:g} megapixels"
    message = f"The {side} image has more than {limit}, the limit of this server; send a smaller image."
    return ServiceError(413, "too_many_pixels", message)


def read_calibration(
    parts: dict[str, bytes], size: tuple[int, int], options: CalibrationOptions
) -> Calibration | None:
    """Parse a calibration in any format of `load_calibration`, for images of this width and height."""
    files = [parts[name] for name in ("calib", "calib_right") if parts.get(name)]
    if not parts.get("calib"):
        if files or options != CalibrationOptions():
            message = "calib_right, unit, rectified and resized need a calibration (the part calib)."
            raise unusable("needs_calibration", message)
        return None
    if max(map(len, files)) > MAX_CALIBRATION_BYTES:
        limit = f"{MAX_CALIBRATION_BYTES // 1000} kB"
        raise ServiceError(413, "calibration_too_large", f"A calibration must not exceed {limit}.")
    try:
        return parse_calibration(*files, **vars(options)).for_size(*size)
    except AanetError as error:
        raise refused("wrong_calibration", error) from None
    except Exception:  # a malicious file can raise any exception
        raise unusable("wrong_calibration", "The calibration cannot be read.") from None
