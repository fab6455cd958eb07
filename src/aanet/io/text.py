"""Numbers and JSON in text that others wrote; everything here takes time linear in the length of the text."""

from __future__ import annotations

import json
import re
from typing import Any

from aanet.errors import ReadError

# ASCII digits only, and no underscores, which Python's own float() would accept.
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_LARGEST = 1e12
_SEPARATORS = re.compile(r"[\s,;\[\]]+")


def parse_numbers(text: str) -> list[float]:
    """The numbers of a line, a bracketed matrix or a YAML list.

    The list is empty if anything else is in the text, or a number beyond ±1e12.
    """
    words = [word for word in _SEPARATORS.split(text) if word not in ("", "-")]
    if not all(_NUMBER.fullmatch(word) for word in words):
        return []
    values = [float(word) for word in words]
    return values if all(abs(value) <= _LARGEST for value in values) else []


def parse_json(text: str, name: str) -> dict[str, Any]:
    """Parse a JSON object; error messages call it `name`."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise ReadError(f"{name} is not valid JSON: {error.msg} in line {error.lineno}.") from error
    except RecursionError as error:
        raise ReadError(f"{name} cannot be read: its JSON is nested too deeply.") from error
    except ValueError as error:  # a number with thousands of digits
        raise ReadError(f"{name} is not valid JSON: a number in it is too long.") from error
    if not isinstance(content, dict):
        raise ReadError(f"{name} is not a JSON object; expected keys with values.")
    return content
