"""Colored point clouds as binary PLY files, which MeshLab, CloudCompare, Blender and Open3D read."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from aanet.errors import InputError, ReadError
from aanet.io.atomic import write_bytes
from aanet.io.files import read_bytes
from aanet.io.images import PathLike

_FIELDS = ("x", "y", "z", "red", "green", "blue")
_VERTEX = np.dtype([(name, "<f4" if name in "xyz" else "u1") for name in _FIELDS])
_TYPES = {"float": "f4", "float32": "f4", "double": "f8", "float64": "f8", "uchar": "u1", "uint8": "u1"}


def write_ply(path: PathLike, points: NDArray[np.floating], colors: NDArray[np.uint8]) -> None:
    """Write points ([..., 3] in meters) and their RGB colors ([..., 3]) without those that are not finite."""
    write_bytes(path, encode_ply(points, colors))


def encode_ply(points: NDArray[np.floating], colors: NDArray[np.uint8]) -> bytes:
    """Encode a PLY file; the arguments are those of `write_ply`."""
    if points.shape[-1] != 3 or colors.shape != points.shape or colors.dtype != np.uint8:
        raise InputError(
            f"A point cloud needs points [..., 3] and as many uint8 colors; got {points.shape} and "
            f"{colors.shape} of {colors.dtype}."
        )
    known = np.isfinite(points).all(axis=-1)
    vertices = np.empty(int(known.sum()), _VERTEX)
    for channel in range(3):
        vertices[_FIELDS[channel]] = points[known, channel]
        vertices[_FIELDS[3 + channel]] = colors[known, channel]
    header = [
        "ply",
        "format binary_little_endian 1.0",
        "comment meters in the frame of the left camera: x right, y down, z forward",
        f"element vertex {len(vertices)}",
        *(f"property {'float' if name in 'xyz' else 'uchar'} {name}" for name in _FIELDS),
        "end_header\n",
    ]
    return "\n".join(header).encode() + vertices.tobytes()


def read_ply(path: PathLike) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Read points [N, 3] and RGB colors [N, 3] of a binary PLY whose first element are colored vertices."""
    data = read_bytes(path, "a PLY file")
    header = re.match(
        rb"ply\r?\nformat binary_(little|big)_endian 1\.0\r?\n(.*?)end_header\r?\n", data, re.DOTALL
    )
    if header is None:
        raise ReadError(f"{path} is not a binary PLY file.")
    vertex = re.search(rb"^element vertex (\d{1,12})\s+((?:property .*\s+)+)", header[2], re.MULTILINE)
    properties = re.findall(r"property (\w+) (\w+)", vertex[2].decode("ascii", "replace")) if vertex else []
    order = "<" if header[1] == b"little" else ">"
    kinds = {name: order + _TYPES[kind] for kind, name in properties if kind in _TYPES}
    if vertex is None or len(kinds) < len(properties) or not kinds.keys() >= set(_FIELDS):
        raise ReadError(f"{path} has no colored vertices; expected x, y, z, red, green and blue.")
    layout, count = np.dtype(list(kinds.items())), int(vertex[1])
    if len(data) - header.end() < count * layout.itemsize:
        raise ReadError(f"{path} is truncated: {count} points need {count * layout.itemsize} bytes of data.")
    vertices = np.frombuffer(data, layout, count, header.end())
    columns = [vertices[name] for name in _FIELDS]
    return np.stack(columns[:3], axis=-1).astype(np.float32), np.stack(columns[3:], axis=-1).astype(np.uint8)
