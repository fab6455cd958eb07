"""The two files of an OpenVINO model, `.xml` and `.bin`, which must always be of one export.

No file system replaces two files at once. While an export is published, or after an interruption of that, the
weights are in a hidden file. Its name contains their digest, which the `.xml` file states:

| step | `model.xml` | `model.bin` | hidden | for `read_pair` | for other runtimes |
|---|---|---|---|---|---|
| before | old | old | | old | old |
| the new weights are stored | old | old | new | old | old |
| the old weights are hidden | old | | old, new | old | no weights: an error |
| the `.xml` file is replaced | new | | old, new | new | no weights: an error |
| the new weights are moved | new | new | old | new | new |
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from pathlib import Path

import openvino

from aanet.errors import ReadError
from aanet.inference.description import WEIGHTS_DIGEST
from aanet.io.atomic import flush_to_disk
from aanet.io.files import MEGABYTE, read_bytes
from aanet.io.locking import locked_folder

_ATTEMPTS = 3
_LARGEST_MODEL = 200 * MEGABYTE  # the .xml file
_DIGEST = re.compile(rf'<{WEIGHTS_DIGEST} value="([0-9a-f]{{64}})"'.encode())


def save_model(model: openvino.Model, path: Path) -> None:
    """Write both files; OpenVINO's own compression would also round biases and normalization constants."""
    try:
        openvino.save_model(model, path, compress_to_fp16=False)
    except RuntimeError as error:  # which does not tell why
        raise OSError("the disk may be full, or the size of files limited") from error


def publish(written: Path, target: Path) -> None:
    """Move both files into another folder of the same file system, replacing those of an older export."""
    new_weights, weights = written.with_suffix(".bin"), target.with_suffix(".bin")
    for file in (written, new_weights):
        flush_to_disk(file)
    with locked_folder(target.parent):
        new = new_weights.replace(_hidden(target, digest(new_weights.read_bytes())))
        old = None
        try:
            if weights.exists():
                old = weights.replace(_hidden(target, digest(weights.read_bytes())))
            written.replace(target)
        except BaseException:
            if old is not None:
                old.replace(weights)
            new.unlink(missing_ok=True)
            raise
        new.replace(weights)
        for leftover in target.parent.glob(_hidden(target, "*").name):
            with contextlib.suppress(OSError):
                leftover.unlink()


def read_pair(path: Path) -> tuple[bytes, bytes]:
    """Return the contents of an `.xml` file and of its weights, also if an export was interrupted.

    The weights are those with the digest that the model states, or else those of the `.bin` file.
    """
    for attempt in range(_ATTEMPTS):  # another process may publish an export between two readings
        model = read_bytes(path, "an OpenVINO model", _LARGEST_MODEL)
        stated = _DIGEST.search(model)
        names = [path.with_suffix(".bin"), *([_hidden(path, stated[1].decode())] if stated else [])]
        try:
            contents = [read_bytes(name, "the weights of a model") for name in names if name.is_file()]
        except ReadError:
            if attempt == _ATTEMPTS - 1:
                raise
            continue
        for content in contents:
            if stated is None or digest(content) == stated[1].decode():
                return model, content
    if not contents:
        raise ReadError(f"The weights of {path} are missing: {names[0]} does not exist.")
    return model, contents[0]


def digest(content: bytes) -> str:
    """Return the SHA-256 of the content of a file."""
    return hashlib.sha256(content).hexdigest()


def _hidden(path: Path, name: str) -> Path:
    return path.with_name(f".{path.stem}.{name}.bin")
