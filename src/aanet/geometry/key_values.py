"""Keys and values of calibration files in YAML, XML and JSON, as OpenCV, ROS and Kalibr write them.

`cv2.FileStorage` must not read files of strangers: deep nesting and sizes that do not fit the data crash the
process; readers of complete YAML expand aliases without a limit.  Calibrations need only the top level and
the level below it, so this reader does not recurse.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aanet.errors import ReadError
from aanet.io.text import parse_json, parse_numbers

# The text of a number, string or list; that of each field of a matrix or mapping; or an array of an NPZ file.
Entry = str | Mapping[str, str] | NDArray[np.float64]

_MATRIX = "opencv-matrix"
_MATRICES = (_MATRIX, "opencv-nd-matrix")
_TYPE = re.compile(r"(\d?)[ucwsifdh]")  # channels and the type of an element, such as d or 3f
_FIELD = re.compile(r"[\w\"']+[ \t]*:")
_COMMENT = re.compile(r"(?:^|\s)#")
_LARGEST_SIDE = 1_000_000
_DEPTH = 16  # elements within elements in XML, lists within lists in JSON


@dataclass(frozen=True)
class Fields:
    """The keys and values of a calibration file, or of one mapping in it.

    Attributes:
        name: What error messages call it.
        entries: The values by key.
    """

    name: str
    entries: Mapping[str, Entry]

    def __contains__(self, key: str) -> bool:
        return key in self.entries

    def first(self, *keys: str) -> str | None:
        """Return the first of several spellings of a key that the file has."""
        return next((key for key in keys if key in self.entries), None)

    def numbers(self, key: str) -> NDArray[np.float64]:
        """Return a matrix [rows, columns], a list [N] or a single number []."""
        return _values(self.entries[key], f"{self.name}: {key}")

    def text(self, key: str) -> str | None:
        """Return a string without its quotes; None if it is empty or there is none."""
        entry = self.entries.get(key)
        return (entry.strip().strip("\"'") or None) if isinstance(entry, str) else None

    def mapping(self, key: str) -> Fields | None:
        """Return the keys and values below a key, if it has any."""
        entry = self.entries.get(key)
        return Fields(f"{self.name}: {key}", entry) if isinstance(entry, Mapping) else None


def listed_keys(keys: Iterable[str]) -> str:
    """The first keys of a file, for error messages."""
    listed = [key[:30].encode("ascii", "backslashreplace").decode() for key in itertools.islice(keys, 9)]
    return ", ".join([*listed[:8], *(["…"] if len(listed) > 8 else [])]) or "none"


def is_storage(text: str) -> bool:
    """Whether the text looks like a FileStorage of OpenCV in any of its formats."""
    return text.startswith(("%YAML", "<?xml")) or any(kind in text for kind in _MATRICES)


def read_fields(text: str, name: str) -> Fields:
    """Read the top level of a file in YAML, XML or JSON; error messages call it `name`."""
    if text.lstrip().startswith("<"):
        return Fields(name, _xml_entries(text, name))
    if text.lstrip().startswith("{"):
        return Fields(name, _json_entries(text, name))
    return Fields(name, _yaml_entries(text, name))


def _values(entry: Entry, where: str) -> NDArray[np.float64]:
    if isinstance(entry, np.ndarray):
        return entry
    if isinstance(entry, str):
        numbers = parse_numbers(entry)
        if not numbers and entry.strip() != "[]":
            raise ReadError(f"{where} cannot be parsed; expected finite numbers or an {_MATRIX}.")
        is_list = len(numbers) != 1 or entry.lstrip().startswith(("[", "-\n", "- "))
        return np.array(numbers if is_list else numbers[0], np.float64)
    sides = ("sizes",) if "sizes" in entry else ("rows", "cols")  # OpenCV 5 has sizes for arrays [N]
    absent = [field for field in (*sides, "data") if field not in entry]
    if absent:
        raise ReadError(f"{where} cannot be parsed: the matrix has no {', '.join(absent)}.")
    shape = [side for field in sides for side in _whole_numbers(entry[field])]
    element = _TYPE.fullmatch(entry.get("dt", "d").strip().strip('"'))  # ROS states no type
    if len(shape) < len(sides) or element is None:
        raise ReadError(f"{where} cannot be parsed: expected whole rows and cols, and dt such as d or f.")
    shape += [int(element[1])] if element[1] else []
    numbers = parse_numbers(entry["data"])
    if len(numbers) != math.prod(shape):
        size = "×".join(map(str, shape))
        raise ReadError(f"{where} cannot be parsed: expected {size} finite numbers, got {len(numbers)}.")
    return np.array(numbers, np.float64).reshape(shape)


def _whole_numbers(text: str) -> list[int]:
    numbers = parse_numbers(text)
    whole = len(numbers) <= _DEPTH and all(
        number == int(number) and 0 <= number <= _LARGEST_SIDE for number in numbers
    )
    return [int(number) for number in numbers] if whole else []


def _yaml_entries(text: str, name: str) -> dict[str, Entry]:
    """A key at the start of a line, and the indented lines that follow it."""
    documents: list[dict[str, list[str]]] = [{}]
    lines: list[str] | None = None
    for whole_line in text.splitlines():
        line = _COMMENT.split(whole_line, maxsplit=1)[0]
        if line.startswith(("---", "...")) and documents[-1]:
            documents.append({})
        if not line.strip() or line.startswith(("%", "---", "...")):
            continue
        if line[0] not in " \t-":
            key, colon, rest = line.partition(":")
            if not colon:
                raise ReadError(f"{name} cannot be parsed: expected 'key: value', got {line[:30]!r}.")
            lines = _new_block(documents[-1], key.strip().strip("\"'"), name)
            lines.append(rest.strip())
        elif lines is not None:
            lines.append(line.strip())
    # `ros2 topic echo` prints the same message again and again, with other time stamps.
    messages = [{**each, "header": []} for each in documents if each]
    if any(message != messages[0] for message in messages):
        raise ReadError(f"{name} has {len(messages)} documents that differ; expected one camera per file.")
    return {key: _yaml_entry(block) for key, block in documents[0].items()}


def _new_block(blocks: dict[str, list[str]], key: str, name: str) -> list[str]:
    if key in blocks:
        raise ReadError(f"{name} cannot be parsed: {key[:30]!r} is in it twice.")
    return blocks.setdefault(key, [])


def _yaml_entry(block: list[str]) -> Entry:
    head, *lines = block
    is_matrix = head.startswith(tuple(f"!!{kind}" for kind in _MATRICES))
    if not is_matrix and (head or not lines or not _FIELD.match(lines[0])):
        return "\n".join(block).strip()
    fields: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        key, colon, rest = line.partition(":")
        if colon:
            current = fields.setdefault(key.strip().strip("\"'"), [])
        current.append(rest if colon else line)
    return {key: " ".join(values).strip() for key, values in fields.items()}


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
            fields = {} if any(f'"{kind}"' in attributes for kind in _MATRICES) else None
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
    valid = text.replace(".Nan", "NaN").replace(".Inf", "Infinity")  # OpenCV writes them as in YAML
    return {
        key: {field: _json_text(content) for field, content in value.items()}
        if isinstance(value, dict)
        else _json_text(value)
        for key, value in parse_json(valid, name).items()
    }


def _json_text(value: Any, depth: int = 0) -> str:
    """The text of a number, string or list of those; "?", which is no number, for anything else."""
    if isinstance(value, list) and depth < _DEPTH:
        return f"[{' '.join(_json_text(item, depth + 1) for item in value)}]"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    return value if isinstance(value, str) else "?"
