"""Reading foreign network files, and refusing those that could run code or touch other files.

Nothing here opens a network: the checks look at the bytes alone, before any runtime sees them.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from aanet.engines.foreign import protobuf
from aanet.engines.foreign.protobuf import ProtobufError
from aanet.errors import ReadError, UnsupportedError
from aanet.inference.description import FORMAT
from aanet.io.files import MEGABYTE, read_bytes

Kind = Literal["onnx", "openvino", "tensorflow"]

SUFFIXES: dict[str, Kind] = {".onnx": "onnx", ".xml": "openvino", ".pb": "tensorflow"}
TITLES: dict[Kind, str] = {"onnx": "ONNX", "openvino": "OpenVINO IR", "tensorflow": "frozen TensorFlow graph"}
_TORCHSCRIPT = (".pt", ".pth", ".ts", ".ptl", ".torchscript", ".jit")
_OTHERS = {  # what people have as well, and the way from there
    ".tflite": "TensorFlow Lite",
    ".h5": "a Keras model",
    ".keras": "a Keras model",
    ".engine": "a TensorRT engine",
    ".trt": "a TensorRT engine",
    ".mlmodel": "a Core ML model",
}
_LARGEST: dict[Kind, int] = {
    "onnx": 2000 * MEGABYTE,
    "openvino": 200 * MEGABYTE,
    "tensorflow": 2000 * MEGABYTE,
}
_LARGEST_WEIGHTS = 4000 * MEGABYTE
_MAX_NODES = 200_000
_MAX_DEPTH = 8  # of graphs inside graphs
_OWN_PREFIX = FORMAT.rsplit("-", 1)[0]
_OWN_XML = re.compile(rb'<format\s+value="' + _OWN_PREFIX.encode())
_ONNX_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")  # built into the runtimes
# TensorFlow operations that read or write files, call Python, or load code.
_TF_UNSAFE = re.compile(
    r"File|PyFunc|Save|Restore|Reader|Record|Dataset|Iterator|Checkpoint|Summary|Sql|Remote|Send|Recv"
    r"|LoadAndRemap|Library|^Print|Rpc|Shell|Custom|Lookup|HashTable|Queue|Variable"
)


@dataclass(frozen=True)
class NetworkFile:
    """The bytes of a network, and of its weights if they are in a file of their own."""

    path: Path
    kind: Kind
    content: bytes
    weights: bytes
    digest: str


@dataclass(frozen=True)
class Facts:
    """What a file says about itself."""

    producer: str = ""
    opset: str = ""


def is_foreign(path: Path) -> bool:
    """Whether a model is a network file that `aanet export` did not write; refuses TorchScript.

    A file that does not exist or cannot be read is left to the caller's own message.
    """
    suffix = path.suffix.lower()
    if suffix in _TORCHSCRIPT and _is_torchscript(path):
        raise UnsupportedError(
            f"{path} is TorchScript, a program that loading would execute, and is not opened; export the "
            "network to ONNX with torch.onnx.export."
        )
    if suffix in _OTHERS and path.is_file():
        raise UnsupportedError(
            f"{path} is {_OTHERS[suffix]}, which cannot be read; convert it to ONNX, OpenVINO IR (.xml) or a "
            "frozen TensorFlow graph (.pb)."
        )
    return suffix in SUFFIXES and path.is_file() and not _is_own(path, SUFFIXES[suffix])


def _is_torchscript(path: Path) -> bool:
    if path.suffix.lower() in (".ts", ".torchscript", ".jit"):
        return path.is_file()
    try:
        with zipfile.ZipFile(path) as archive:
            return any("/code/" in name for name in archive.namelist()[:100_000])
    except (OSError, ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile):
        return False  # weights in the older format of torch.save, or no file


def _is_own(path: Path, kind: Kind) -> bool:
    """Whether the file has the description that `aanet export` writes."""
    if kind == "tensorflow":
        return False
    content = read_bytes(path, "a network file", _LARGEST[kind])
    if kind == "openvino":
        return _OWN_XML.search(content) is not None
    try:
        properties = protobuf.messages(memoryview(content), 14)
        return any(
            protobuf.text(each, 1) == "format" and protobuf.text(each, 2).startswith(_OWN_PREFIX)
            for each in properties
        )
    except ProtobufError:
        return False


def read_network_file(path: Path) -> NetworkFile:
    """Read a network file and refuse it if it is not safe to open."""
    kind = SUFFIXES[path.suffix.lower()]
    content = read_bytes(path, f"a network ({TITLES[kind]})", _LARGEST[kind])
    weights = b""
    if kind == "openvino":
        beside = path.with_suffix(".bin")
        if beside.exists():
            weights = read_bytes(beside, "the weights of a network", _LARGEST_WEIGHTS)
    digest = hashlib.sha256(content)
    digest.update(hashlib.sha256(weights).digest())
    file = NetworkFile(path, kind, content, weights, digest.hexdigest())
    check(file)
    return file


def check(file: NetworkFile) -> Facts:
    """Refuse a file that is of another kind, or that could run code or touch other files."""
    try:
        if file.kind == "onnx":
            return _check_onnx(file)
        if file.kind == "tensorflow":
            return _check_tensorflow(file)
        return _check_openvino(file)
    except ProtobufError as error:
        raise ReadError(f"{file.path} is not {_article(file.kind)}, or it is damaged: {error}.") from error


def _article(kind: Kind) -> str:
    return f"an {TITLES[kind]} file" if kind != "tensorflow" else f"a {TITLES[kind]}"


def _check_onnx(file: NetworkFile) -> Facts:
    model = memoryview(file.content)
    graphs = list(protobuf.messages(model, 7))
    if len(graphs) != 1:
        raise ReadError(f"{file.path} is not an ONNX file, or it is damaged: it contains no graph.")
    budget = [_MAX_NODES]
    for each in protobuf.messages(model, 25):  # functions of the file's own, made of standard operations
        _check_onnx_nodes(protobuf.messages(each, 7), file.path, 1, budget)
    _check_onnx_graph(graphs[0], file.path, 1, budget)
    opsets = {protobuf.text(each, 1): protobuf.number(each, 2) for each in protobuf.messages(model, 8)}
    producer = f"{protobuf.text(model, 2)} {protobuf.text(model, 3)}".strip()
    return Facts(_plain(producer), str(opsets.get("", opsets.get("ai.onnx", ""))))


def _check_onnx_graph(graph: memoryview, path: Path, depth: int, budget: list[int]) -> None:
    if depth > _MAX_DEPTH:
        raise ReadError(f"{path} has graphs inside graphs, more than {_MAX_DEPTH} deep, and is not opened.")
    for tensor in protobuf.messages(graph, 5):
        _check_onnx_tensor(tensor, path)
    for sparse in protobuf.messages(graph, 15):
        _check_sparse(sparse, path)
    _check_onnx_nodes(protobuf.messages(graph, 1), path, depth, budget)


def _check_onnx_nodes(nodes: Iterator[memoryview], path: Path, depth: int, budget: list[int]) -> None:
    for node in nodes:
        budget[0] -= 1
        if budget[0] < 0:
            raise ReadError(f"{path} has more than {_MAX_NODES} operations and is not opened.")
        domain = protobuf.text(node, 7)
        if domain not in _ONNX_DOMAINS:
            raise UnsupportedError(
                f"{path} uses operations of {_plain(domain)!r}, which need code from elsewhere; export it "
                "with standard ONNX operations."
            )
        for attribute in protobuf.messages(node, 5):
            for number in (5, 10):
                for tensor in protobuf.messages(attribute, number):
                    _check_onnx_tensor(tensor, path)
            for number in (22, 23):
                for sparse in protobuf.messages(attribute, number):
                    _check_sparse(sparse, path)
            for number in (6, 11):
                for graph in protobuf.messages(attribute, number):
                    _check_onnx_graph(graph, path, depth + 1, budget)


def _check_sparse(sparse: memoryview, path: Path) -> None:
    for number in (1, 2):
        for tensor in protobuf.messages(sparse, number):
            _check_onnx_tensor(tensor, path)


def _check_onnx_tensor(tensor: memoryview, path: Path) -> None:
    for number, value in protobuf.fields(tensor):
        if number == 13 or (number == 14 and value != 0):
            raise UnsupportedError(
                f"{path} keeps weights in another file, which is not read; save the network as one file "
                "(onnx.save with save_as_external_data=False)."
            )


def _check_tensorflow(file: NetworkFile) -> Facts:
    graph, nodes, names = memoryview(file.content), 0, set()
    for number, value in protobuf.fields(graph):
        if number == 1 and isinstance(value, int):  # the version of a SavedModel; a graph has nodes there
            raise UnsupportedError(
                f"{file.path} is a TensorFlow SavedModel, not a frozen graph; freeze it, or convert it to "
                "ONNX."
            )
        if number not in (1, 2, 3, 4, 5) or not isinstance(value, int | memoryview):
            raise ProtobufError("it has fields that a graph has not")
        if number == 1 and isinstance(value, memoryview):
            nodes += 1
            names.add(protobuf.text(value, 2))
        if number == 2 and isinstance(value, memoryview):  # functions
            for function in protobuf.messages(value, 1):
                for node in protobuf.messages(function, 3):
                    nodes += 1
                    names.add(protobuf.text(node, 2))
        if nodes > _MAX_NODES:
            raise ReadError(f"{file.path} has more than {_MAX_NODES} operations and is not opened.")
    if not nodes:
        raise ProtobufError("it contains no graph")
    unsafe = sorted(name for name in names if _TF_UNSAFE.search(name))
    if unsafe:
        raise UnsupportedError(
            f"{file.path} contains the operation {_plain(unsafe[0])}, which may touch files, state or code; "
            "only frozen graphs that compute are opened."
        )
    return Facts()


def _check_openvino(file: NetworkFile) -> Facts:
    head = file.content[:4096].lstrip()
    if b"<net" not in head:
        raise ReadError(f"{file.path} is not an OpenVINO IR file, or it is damaged: it contains no network.")
    if b"<!DOCTYPE" in file.content or b"<!ENTITY" in file.content:
        raise ReadError(f"{file.path} declares XML entities, which no network needs, and is not opened.")
    if not file.weights and b'type="Const"' in file.content:
        raise ReadError(f"The weights of {file.path} are missing: {file.path.with_suffix('.bin')} is absent.")
    version = re.search(rb'<net[^>]{0,500}\sversion="(\d{1,4})"', head)
    return Facts("", f"IR {version[1].decode()}" if version else "")


def _plain(text: str) -> str:
    """Return a text of a file for a message: short, in one line."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:60]
