"""Rewriting of frozen TensorFlow graphs, so that OpenVINO computes what TensorFlow does.

OpenVINO moves transpositions (NHWC to NCHW) through the graph. Where it moves one across a `Tile`, it
permutes the multiples in the wrong direction (seen in 2026.4): repeated channels become repeated rows, and
the network computes something else without any error; HITNet's disparities are 2.5 pixels too large then. A
concatenation of copies is the same computation, and is moved correctly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from aanet.engines.foreign import protobuf
from aanet.engines.foreign.protobuf import bytes_field, number_field

_NODE, _NAME, _OPERATION, _INPUT, _ATTRIBUTE = 1, 1, 2, 3, 5  # of a graph, and of a node
_LARGEST_MULTIPLE = 1024
_INT32 = 3  # TensorFlow's number of the type
_WHOLE_TYPES: dict[int, np.dtype[Any]] = {_INT32: np.dtype("<i4"), 9: np.dtype("<i8")}


def without_tiles(graph: bytes) -> bytes:
    """Return a graph in which every `Tile` with constant multiples is a concatenation of copies."""
    nodes = {protobuf.text(node, _NAME): node for node in protobuf.messages(memoryview(graph), _NODE)}
    rewritten = []
    for number, value in protobuf.fields(memoryview(graph)):
        if isinstance(value, int):
            rewritten.append(number_field(number, value))
        elif number != _NODE:
            rewritten.append(bytes_field(number, value))
        else:
            rewritten += [bytes_field(_NODE, node) for node in _expanded(value, nodes)]
    return b"".join(rewritten)


def _expanded(node: memoryview, nodes: dict[str, memoryview]) -> list[bytes]:
    """Return the nodes that replace one: itself, unless it is a `Tile` with constant multiples."""
    inputs = [bytes(each).decode("utf-8", "replace") for each in protobuf.messages(node, _INPUT)]
    if protobuf.text(node, _OPERATION) != "Tile" or len(inputs) != 2:
        return [bytes(node)]
    multiples = _whole_numbers(nodes.get(inputs[1].removesuffix(":0")))
    repeated = [axis for axis, multiple in enumerate(multiples) if multiple > 1]
    if not repeated or not all(1 <= multiple <= _LARGEST_MULTIPLE for multiple in multiples):
        return [bytes(node)]
    name, current = protobuf.text(node, _NAME), inputs[0]
    kind = dict(_attributes(node)).get("T", memoryview(b""))
    found = []
    for axis in repeated:
        joined = name if axis == repeated[-1] else f"{name}/along_{axis}"
        found.append(_constant(f"{joined}/axis", axis))
        found.append(_concatenation(joined, [current] * multiples[axis], f"{joined}/axis", kind))
        current = joined
    return found


def _concatenation(name: str, inputs: list[str], axis: str, kind: memoryview) -> bytes:
    parts = [_text(_NAME, name), _text(_OPERATION, "ConcatV2")]
    parts += [_text(_INPUT, each) for each in [*inputs, axis]]
    parts += [
        _attribute("N", number_field(3, len(inputs))),
        _attribute("T", kind),
        _attribute("Tidx", number_field(6, _INT32)),
    ]
    return b"".join(parts)


def _constant(name: str, value: int) -> bytes:
    content = bytes_field(4, np.int32(value).astype("<i4").tobytes())
    tensor = number_field(1, _INT32) + bytes_field(2, b"") + content
    parts = [_text(_NAME, name), _text(_OPERATION, "Const")]
    parts += [_attribute("dtype", number_field(6, _INT32)), _attribute("value", bytes_field(8, tensor))]
    return b"".join(parts)


def _whole_numbers(node: memoryview | None) -> list[int]:
    """Return the numbers of a constant node; none if it is another one, or stores them otherwise."""
    if node is None or protobuf.text(node, _OPERATION) != "Const":
        return []
    for tensor in protobuf.messages(dict(_attributes(node)).get("value", memoryview(b"")), 8):
        kind = _WHOLE_TYPES.get(protobuf.number(tensor, 1))
        for content in protobuf.messages(tensor, 4):
            if kind is not None and len(content) % kind.itemsize == 0:
                return [int(each) for each in np.frombuffer(content, kind)]
    return []


def _attributes(node: memoryview) -> Iterator[tuple[str, memoryview]]:
    for entry in protobuf.messages(node, _ATTRIBUTE):
        for value in protobuf.messages(entry, 2):
            yield protobuf.text(entry, 1), value


def _attribute(key: str, value: bytes | memoryview) -> bytes:
    return bytes_field(_ATTRIBUTE, _text(1, key) + bytes_field(2, value))


def _text(number: int, value: str) -> bytes:
    return bytes_field(number, value.encode())
