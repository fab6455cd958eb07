"""Parsing TOML, with one error for everything that is wrong."""

from __future__ import annotations

import tomllib
from typing import Any

TomlError = tomllib.TOMLDecodeError


def loads(text: str) -> dict[str, Any]:
    """Parse TOML; every error is a `TomlError`."""
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except TomlError:
        raise
    except RecursionError as error:
        raise TomlError("it is nested too deeply") from error
    except (ValueError, OverflowError) as error:  # a number or a date that Python cannot represent
        raise TomlError(str(error)) from error
    return table
