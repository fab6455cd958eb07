"""The recipes that come with the package: one TOML file each, found by name."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from aanet.errors import ReadError
from aanet.training.schema import shown

FOLDER = Path(__file__).resolve().parent / "recipes"
_SUFFIX = ".toml"


def names() -> list[str]:
    """Return the names of all bundled recipes."""
    return sorted(path.stem for path in FOLDER.glob(f"*{_SUFFIX}"))


def find(source: Path | str, folder: Path | None = None) -> Path:
    """Return the file of a recipe that is given by its path or, if it is bundled, by its name.

    Args:
        source: A name without a suffix, or a path.
        folder: The folder that a path is relative to; default: the working directory.
    """
    text = str(source)
    if text in names():
        return FOLDER / f"{text}{_SUFFIX}"
    path = Path(text) if folder is None else folder / text
    if os.path.exists(path):  # noqa: PTH110 - false for names that are too long or have a null character
        return path
    name = path.stem
    if path.suffix == _SUFFIX and name in names():
        raise ReadError(f"{path} does not exist; the bundled recipe of that name is called {name!r}.")
    if path.suffix or len(Path(text).parts) > 1:
        return path  # reading it says what is wrong
    raise ReadError(f"There is no bundled recipe {shown(text)}; {_hint(text)}.")


def _hint(text: str) -> str:
    near = [repr(name) for name in difflib.get_close_matches(text, names(), n=3)]
    if near:
        return f"did you mean {' or '.join([', '.join(near[:-1]), near[-1]] if near[1:] else near)}"
    return "`aanet train --list` shows all of them, and a recipe of your own is a path that ends in .toml"
