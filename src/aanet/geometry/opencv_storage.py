"""Read the matrices and numbers of OpenCV's FileStorage in YAML, XML and JSON.

`cv2.FileStorage` must not read files of strangers: deep nesting and sizes that do not fit the data crash the
process.  Calibrations need only what is at the top level, so this reader does not recurse.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aanet.errors import ReadError
from aanet.io.text import parse_json, parse_numbers

Entry = str | Mapping[str, str]  # the text of a number or list, or that of each field of a matrix

_MATRIX = "opencv-matrix"
_TYPE = re.compile(r"(\d?)[ucwsifdh]")  # channels and the type of an element, such as d or 3f
_LARGEST_SIDE = 1_000_000
_DEPTH = 16  # elements within elements in XML


def is_storage(text: str) -> bool:
    """Whether the text looks like a FileStorage in any of its formats."""
    return text.startswith(("%YAML", "<?xml")) or _MATRIX in text


def read_storage(text: str, name: str, keys: Collection[str]) -> dict[str, NDArray[np.float64]]:
    """Read matrices [rows, columns], lists [N] and single numbers [] at the top level of a FileStorage.

    Args:
        text: The content of the file.
        name: What error messages call it.
        keys: What to read; everything else is skipped.
    """
    if text.startswith("%YAML"):
        entries = _yaml_entries(text, name)
    elif text.lstrip().startswith("<"):
        entries = _xml_entries(text, name)
    else:
        entries = _json_entries(text, name)
    return {key: _values(entry, f"{name}: {key}") for key, entry in entries.items() if key in keys}


def _values(entry: Entry, where: str) -> NDArray[np.float64]:
    if isinstance(entry, str):
        numbers = parse_numbers(entry)
        if not numbers:
            raise ReadError(f"{where} cannot be parsed; expected finite numbers or an {_MATRIX}.")
        is_list = len(numbers) > 1 or entry.lstrip().startswith(("[", "-\n", "- "))
        return np.array(numbers if is_list else numbers[0], np.float64)
    absent = [field for field in ("rows", "cols", "dt", "data") if field not in entry]
    if absent:
        raise ReadError(f"{where} cannot be parsed: the matrix has no {', '.join(absent)}.")
    rows, columns = (_side(entry[field]) for field in ("rows", "cols"))
    element = _TYPE.fullmatch(entry["dt"].strip().strip('"'))
    if rows is None or columns is None or element is None:
        raise ReadError(f"{where} cannot be parsed: expected whole rows and cols, and dt such as d or f.")
    shape = (rows, columns, int(element[1])) if element[1] else (rows, columns)
    numbers = parse_numbers(entry["data"])
    if len(numbers) != math.prod(shape):
        size = "×".join(map(str, shape))
        raise ReadError(f"{where} cannot be parsed: expected {size} finite numbers, got {len(numbers)}.")
    return np.array(numbers, np.float64).reshape(shape)


def _side(text: str) -> int | None:
    numbers = parse_numbers(text)
    whole = len(numbers) == 1 and numbers[0] == int(numbers[0]) and 0 <= numbers[0] <= _LARGEST_SIDE
    return int(numbers[0]) if whole else None


def _yaml_entries(text: str, name: str) -> dict[str, Entry]:
    """A key at the start of a line, and the indented lines that follow it."""
    blocks: dict[str, list[str]] = {}
    lines: list[str] | None = None
    for line in text.splitlines():
        if not line.strip() or line.startswith(("%", "---", "...")) or line.lstrip().startswith("#"):
            continue
        if line[0] not in " \t-":
            key, colon, rest = line.partition(":")
            if not colon:
                raise ReadError(f"{name} cannot be parsed: expected 'key: value', got {line[:30]!r}.")
            lines = _new_block(blocks, key.strip().strip('"'), name)
            lines.append(rest.strip())
        elif lines is not None:
            lines.append(line.strip())
    return {key: _yaml_entry(block) for key, block in blocks.items()}


def _new_block(blocks: dict[str, list[str]], key: str, name: str) -> list[str]:
    if key in blocks:
        raise ReadError(f"{name} cannot be parsed: {key[:30]!r} is in it twice.")
    return blocks.setdefault(key, [])


def _yaml_entry(block: list[str]) -> Entry:
    head, *lines = block
    if not head.startswith(f"!!{_MATRIX}"):
        return "\n".join(block).strip()
    fields: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        key, colon, rest = line.partition(":")
        if colon:
            current = fields.setdefault(key.strip(), [])
        current.append(rest if colon else line)
    return {key: " ".join(values) for key, values in fields.items()}


def _xml_entries(text: str, name: str) -> dict[str, Entry]:
    """Elements of <opencv_storage>, and the elements within those that are matrices."""
    entries: dict[str, Entry] = {}
    path: list[str] = []
    fields: dict[str, str] | None = None
    for tag, content in _xml_tags(text, name):
        if tag.startswith("/"):
            if not path or path.pop() != tag[1:].strip():
                raise ReadError(f"{name} cannot be parsed: its XML has {tag[:30]!r} in the wrong place.")
            continue
        label, _, attributes = tag.partition(" ")
        path.append(label)
        if len(path) > _DEPTH:
            raise ReadError(f"{name} cannot be parsed: its XML is nested too deeply.")
        if len(path) == 2:
            if label in entries:
                raise ReadError(f"{name} cannot be parsed: {label[:30]!r} is in it twice.")
            fields = {} if f'"{_MATRIX}"' in attributes else None
            entries[label] = content if fields is None else fields
        elif len(path) == 3 and fields is not None:
            fields[label] = content
    if path:
        raise ReadError(f"{name} cannot be parsed: its XML ends within {path[-1][:30]!r}.")
    return entries


def _xml_tags(text: str, name: str) -> list[tuple[str, str]]:
    """Every tag, without its brackets, with the text that follows it."""
    tags = []
    for part in _without_comments(text).split("<")[1:]:
        tag, bracket, content = part.partition(">")
        if not bracket or tag.startswith("!"):
            raise ReadError(f"{name} cannot be parsed: its XML has the unexpected tag {tag[:30]!r}.")
        if not tag.startswith("?"):
            tags.append((tag.strip(), content))
    return tags


def _without_comments(text: str) -> str:
    kept, *rest = text.split("<!--")
    return kept + "".join(part.partition("-->")[2] for part in rest)


def _json_entries(text: str, name: str) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    valid = text.replace(".Nan", "NaN").replace(".Inf", "Infinity")  # OpenCV writes them as in YAML
    for key, value in parse_json(valid, name).items():
        if isinstance(value, dict) and value.get("type_id") == _MATRIX:
            entries[key] = {field: _json_text(content) for field, content in value.items()}
        else:
            entries[key] = _json_text(value)
    return entries


def _json_text(value: Any) -> str:
    """The text of a number, string or flat list; "?", which is no number, for anything else."""
    if isinstance(value, list):
        return f"[{' '.join('?' if isinstance(item, list) else _json_text(item) for item in value)}]"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    return value if isinstance(value, str) else "?"
