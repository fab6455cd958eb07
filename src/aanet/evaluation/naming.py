"""Short names of models, for tables and reports."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from aanet.errors import InputError


def name_models(models: Sequence[str]) -> dict[str, str]:
    """Give every model a short name.

    `NAME=MODEL` gives the name explicitly.  Otherwise a file has its name without folder and suffix, preceded
    by as many folders as tell it apart from the other files, and any other model its own name.

    Returns:
        The models as the matcher takes them, by their short names, in order.
    """
    named = [_split(model) for model in models]
    files = [Path(source) for name, source in named if name is None and is_file_name(source)]
    result: dict[str, str] = {}
    for name, source in named:
        if name is None:
            name = _short_name(Path(source), files) if is_file_name(source) else source
        if name in result:
            raise InputError(f"Two models are called {name!r}; name them, as in mine={source}.")
        result[name] = source
    return result


def name_folders(folders: Sequence[str], taken: Collection[str]) -> dict[str, Path]:
    """Read folders of predicted maps, each given as NAME=FOLDER; `taken` are the names of the models."""
    result: dict[str, Path] = {}
    for text in folders:
        name, _, folder = text.partition("=")
        if not name or not folder:
            raise InputError(f"Predicted disparity maps are given as NAME=FOLDER; got {text!r}.")
        if name in result or name in taken:
            raise InputError(f"Two rows would be called {name!r}; choose another name for {folder}.")
        result[name] = Path(folder)
    return result


def is_file_name(model: str) -> bool:
    """Whether a model is the name of a file rather than that of a network or of bundled weights."""
    return bool(Path(model).suffix) or Path(model).name != model


def _split(model: str) -> tuple[str | None, str]:
    name, equals, source = model.partition("=")
    if not equals or Path(name).name != name or Path(model).exists():
        return None, model
    if not name or not source:
        raise InputError(f"A name for a model is given as NAME=MODEL; got {model!r}.")
    return name, source


def _short_name(file: Path, files: Sequence[Path]) -> str:
    others = [other.with_suffix("").parts for other in files if other != file]
    parts = file.with_suffix("").parts
    for count in range(1, len(parts) + 1):
        if all(other[-count:] != parts[-count:] for other in others):
            return "/".join(parts[-count:])
    return file.as_posix()
