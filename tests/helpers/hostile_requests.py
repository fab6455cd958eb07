"""Hostile HTTP requests, the same for the same seed."""

from __future__ import annotations

import io
import random
import urllib.parse
from collections.abc import Callable, Iterator

import numpy as np
import PIL.Image

from aanet.data.motorcycle import motorcycle
from fuzz.mutation import mutate, mutate_bytes
from helpers.hostile import CALIBRATIONS, NO_SIZE, NOT_IMAGES, STALLING_CALIBRATIONS, png_of_zeros

LARGE_SHARE = 0.03  # of the cases with images have one of several megabytes
FORM = b"multipart/form-data; boundary=b"
DISPARITY = b"/api/v1/disparity"
PATHS = (
    *(b"/", b"/healthz", b"/readyz", b"/metrics", b"/api/v1/models", b"/api/v1/openapi.json", DISPARITY),
    *(b"/static/main.js", b"/static/../../settings.py", b"/static/%2e%2e/%2e%2e/settings.py", b"//", b"/%00"),
    *(
        b"/page/motorcycle/..%2f",
        b"/page/motorcycle/left.png",
        b"*",
        b"/\xff",
        b"/" + b"a" * 9000,
        b"/?" + b"&" * 5000,
    ),
)
METHODS = (
    b"GET",
    b"HEAD",
    b"POST",
    b"PUT",
    b"DELETE",
    b"OPTIONS",
    b"TRACE",
    b"CONNECT",
    b"get",
    b"G\xe9T",
    b"",
)
HOSTS = (
    *(b"127.0.0.1", b"localhost:1", b"[::1]", b"evil.example", b"127.0.0.1.evil.example", b"", b"[", b"\xff"),
    *(b"127.0.0.1@evil.example", b"localhost:99999999", b"a" * 5000, b"127.0.0.1, evil.example"),
)
HEADERS = (
    *(b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: 9" + b"9" * 30, b"Content-Length: x"),
    *(b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding:\x0bchunked"),
    *(
        b"Connection: close",
        b"Connection: Upgrade\r\nUpgrade: websocket",
        b"Upgrade: h2c",
        b"Expect: 100-continue",
    ),
    *(b"Expect: nonsense", b"Origin: https://evil.example", b"Origin: null", b"Sec-Fetch-Site: cross-site"),
    *(b"Authorization: Bearer " + b"x" * 5000, b"Authorization: Bearer \xff", b"Range: bytes=0-0,-1,5-"),
    *(
        b"X: " + b"y" * 70_000,
        b"X: a\r\n folded",
        b"no colon",
        b": no name",
        b"A\x00: b",
        b"Cookie: " + b"a=b;" * 2000,
    ),
    *(
        b"If-None-Match: *",
        b"Accept-Encoding: " + b"gzip," * 900,
        b"Content-Type: " + FORM,
        b"Host: evil.example",
    ),
)
VALUES = (
    "",
    "0",
    "-1",
    "1e-300",
    "1e309",
    "nan",
    "\x00",
    "\ud7ff",
    "a" * 200,
    "../../etc/passwd",
    "true",
    "[]",
    "%",
)


BODIES = (*(b"", b"0\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n", b"ffffffffffffffff\r\n", b"-1\r\n", b"{}" * 10),)
JUNK = (b"\x16\x03\x01\x02\x00\x01", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", bytes(range(256)), b"\r\n" * 50)
VERSIONS = (*(b"HTTP/1.1",) * 3, b"HTTP/1.0", b"HTTP/9.9", b"HTTP/1.1 x", b"")
CONTENT_TYPES = (*(FORM,) * 3, b"multipart/form-data", FORM + b"-" * 300, b"text/plain")
SIZES = ((40_000, 40_000), (1_000_000, 8), (8, 16_385), (0, 5), (96, 56), (2**31 - 1, 1))
_PART = b'--b\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
_HEAD = (
    b"POST %s?%s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: %s\r\n"
    b"Content-Length: %d\r\n\r\n"
)


def _calibrations() -> tuple[bytes, ...]:
    """A valid one of each format."""
    camera = b'{"format": "aanet-stereo-camera", "fx": 90.5, "cx": 48, "cy": 28, "baseline_m": 0.2}'
    middlebury = (
        b"cam0=[90 0 48; 0 90 28; 0 0 1]\ncam1=[90 0 50; 0 90 28; 0 0 1]\ndoffs=2\nbaseline=193\n"
        b"width=96\nheight=56\n"
    )
    kitti = b"".join(b"P%d: 90 0 48 %d 0 90 28 0 0 0 1 0\n" % (i, -50 * (i % 2)) for i in range(4))
    matrix = b"!!opencv-matrix\n   rows: %d\n   cols: %d\n   dt: d\n   data: [ %s ]\n"
    lens = matrix % (3, 3, b"90., 0., 48., 0., 90., 28., 0., 0., 1.")
    opencv = b"%YAML:1.0\n---\nM1: " + lens + b"M2: " + lens + b"T: " + matrix % (3, 1, b"-0.1, 0., 0.")
    opencv += b"R: " + matrix % (3, 3, b"1., 0., 0., 0., 1., 0., 0., 0., 1.")
    return camera, middlebury, kitti, opencv


class Requests:
    """Draws hostile requests."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        sample = motorcycle()
        self._pair = [np.ascontiguousarray(each[220:276, 200:296]) for each in (sample.left, sample.right)]
        self._images = {kind: self._encode(kind) for kind in ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "PPM")}
        self._kinds: tuple[Callable[[], bytes], ...] = (
            *(self._raw, self._parameters, self._form, self._damaged_form, self._image, self._calibration),
        )

    def draw(self, count: int) -> Iterator[tuple[str, bytes]]:
        """Yield the kind and the bytes of each request, all kinds equally often."""
        for index in range(count):
            make = self._kinds[index % len(self._kinds)]
            yield make.__name__.strip("_"), make()

    def good(self) -> bytes:
        """A request that must succeed."""
        return self._post(self._body(self._good_files()))

    def _encode(self, kind: str) -> list[bytes]:
        files = [io.BytesIO() for _ in self._pair]
        for file, image in zip(files, self._pair, strict=True):
            PIL.Image.fromarray(image).save(file, kind)
        return [file.getvalue() for file in files]

    def _raw(self) -> bytes:
        rng = self._rng
        if rng.random() < 0.1:
            return mutate_bytes(rng.choice(JUNK), rng)
        # Often only one thing is wrong, because the first one that is noticed hides the others.
        method, version, host = (
            rng.choice(choices) if rng.random() < 0.3 else choices[0]
            for choices in (METHODS, VERSIONS, HOSTS)
        )
        lines = [b" ".join((method, rng.choice(PATHS), version)), b"Host: " + host]
        lines += rng.choices(HEADERS, k=rng.choice((0, 0, 1, 1, 2, 150)))
        end = rng.choice((b"\r\n", b"\r\n", b"\n"))
        head = end.join(lines) + end + end
        return (mutate_bytes(head, rng) if rng.random() < 0.2 else head) + rng.choice(BODIES)

    def _parameters(self) -> bytes:
        rng = self._rng
        known = {"model": "sgbm", "format": "summary", "max_disparity": "16", "scale": "1", "check": "false"}
        for _ in range(rng.randint(1, 3)):
            known[rng.choice((*known, "sacle", "model[]"))] = rng.choice(VALUES)
        return self._post(self._body(self._good_files()), query=urllib.parse.urlencode(known).encode())

    def _form(self) -> bytes:
        """A form that is well formed but not what is expected."""
        files = self._good_files()
        odd = (
            _PART % (b"left", b"", b"text"),
            _PART % (b"left", b"; filename*=UTF-8''x", files["left"]) * 2,
            _PART % (b"\xff\xfe", b'; filename="x"', b"") * 3,
            _PART % (b"a" * 9000, b'; filename="x"', b""),
            _PART % (b"left", b'; filename="' + b"../" * 500 + b'"', files["left"]),
            _PART % (b"left", b'; filename="x"', b"") * 2000,
            b"--b\r\n" + b"X: y\r\n" * 3000 + b"\r\n",
            b"--b\r\n\r\nno header\r\n" * 200,
            b"--b\r\nContent-Disposition: form-data\r\n\r\n",
            b"--b--\r\n" * 50,
        )
        return self._post(self._rng.choice(odd) + self._body(files), self._rng.choice(CONTENT_TYPES))

    def _damaged_form(self) -> bytes:
        body = self._body(self._good_files())
        return self._post(mutate_bytes(body, self._rng))

    def _image(self) -> bytes:
        rng, files = self._rng, self._good_files(self._rng.choice(list(self._images)))
        side, choice = rng.choice(("left", "right")), rng.random()
        if choice < LARGE_SHARE:
            files[side] = rng.choice(list(NO_SIZE.values()))
        elif choice < 0.1:
            files[side] = rng.choice(list(NOT_IMAGES.values()))
        elif choice < 0.2:
            files["left"] = files["right"] = png_of_zeros(*rng.choice(SIZES))
        else:
            files[side] = mutate(files[side], rng)
        return self._post(self._body(files))

    def _calibration(self) -> bytes:
        rng, hostile = self._rng, [*CALIBRATIONS.values(), *STALLING_CALIBRATIONS.values()]
        chosen = rng.choice(hostile) if rng.random() < 0.2 else mutate(rng.choice(_calibrations()), rng)
        return self._post(self._body({**self._good_files(), "calib": chosen}))

    def _good_files(self, kind: str = "PNG") -> dict[str, bytes]:
        return dict(zip(("left", "right"), self._images[kind], strict=True))

    def _body(self, files: dict[str, bytes]) -> bytes:
        parts = (_PART % (name.encode(), b'; filename="f"', data) for name, data in files.items())
        return b"".join(parts) + b"--b--\r\n"

    def _post(self, body: bytes, kind: bytes = FORM, query: bytes = b"format=summary") -> bytes:
        return _HEAD % (DISPARITY, query, kind, len(body)) + body
