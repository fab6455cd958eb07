"""Files that are hostile to a server."""

from __future__ import annotations

import struct
import zlib


def png_of_zeros(width: int, height: int) -> bytes:
    """A PNG of a few hundred bytes whose header promises more pixels than it has."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")


EMPTY_CHUNK = struct.pack(">I", 0) + b"teXt" + struct.pack(">I", zlib.crc32(b"teXt"))
NO_SIZE = {
    "PNG of empty chunks": b"\x89PNG\r\n\x1a\n" + EMPTY_CHUNK * 400_000,
    "JPEG of empty segments": b"\xff\xd8" + b"\xff\xe1\x00\x02" * 1_000_000,
    "JPEG of padding": b"\xff\xd8" + b"\xff" * 4_000_000,
    "PPM of comment": b"P6\n#" + b"x" * 4_000_000,
}
CAMERA = b'{"format": "aanet-stereo-camera", "fx": 1, "cx": 1, "cy": 1'
NESTED = b'{"a":' * 40_000
NOT_IMAGES = {
    "text": b"/etc/passwd\n",
    "script": b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
    "gif": b"GIF89a\x01\x00\x01\x00\x00\x00\x00;",
    "nothing that is known": bytes(range(256)) * 4,
}
CALIBRATIONS = {
    "text": b"not a calibration",
    "nested JSON": NESTED,
    "of another size": CAMERA + b', "baseline_m": 1, "width": 9}',
    "without a baseline": CAMERA + b"}",
    "broken YAML": b"%YAML:1.0\n---\nM1: !!opencv-matrix\n   rows: 99999999\n",
    "one camera of ROS": b"image_width: 200\nprojection_matrix:\n  data: [1, 2, 3]\n",
    "an image": b"\x89PNG\r\n\x1a\n",
}
# Each of them crashed or stalled a server once.
STALLING_CALIBRATIONS = {
    "nested YAML": b"%YAML:1.0\na: " + b"[" * 40_000,
    "nested YAML maps": b"%YAML:1.0\n" + b"{a: " * 60_000,
    "nested XML": b'<?xml version="1.0"?><opencv_storage>' + b"<a>" * 40_000,
    "nested JSON matrix": b'{"opencv-matrix": ' + b"[" * 40_000,
    "newlines": b"\n" * 255_000,
    "blanks": b"cam0=x" + b" " * 254_000 + b"y",
    "not a number": CAMERA + b', "baseline_m": 1, "cx_right": NaN}',
    "surrogate": b'{"format":"aanet-stereo-camera","\\ud800":1}',
}
