"""Converted networks on disk: found again by content, whole or absent, safe with several processes at once.

The folder is `$AANET_CACHE`, or `aanet` in the user's cache folder.  Deleting it costs one conversion.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import platformdirs

from aanet.inference.spec import NetworkSpec
from aanet.io.atomic import temporary_folder
from aanet.io.files import read_bytes
from aanet.io.locking import locked_folder

_MODEL, _WEIGHTS, _SPEC = "model.xml", "model.bin", "spec.json"
KEPT = 16  # converted networks; those that were not used for the longest time make room
_log = logging.getLogger(__name__)


class Converted(NamedTuple):
    """A network as OpenVINO reads it."""

    model: Path
    spec: NetworkSpec


def cache_folder() -> Path:
    """Return the folder of everything that can be made again."""
    chosen = os.environ.get("AANET_CACHE")
    return Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("aanet", appauthor=False)


def key_of(weights: Path, max_disparity: int | None, converter: str) -> str:
    """Return the name under which a converted file of weights is kept: all that decides the result is in it.

    Args:
        weights: The file; its content counts, not its name.
        max_disparity: What replaces the file's own, if anything does.
        converter: Name and version of what converts.
    """
    content = hashlib.sha256(read_bytes(weights, "a file of weights")).hexdigest()
    parts = (content, str(max_disparity), converter, _code())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def load(key: str) -> Converted | None:
    """Return what is kept under a key; None if there is nothing, or if it is damaged."""
    folder = cache_folder() / "openvino" / key
    found = _read(folder)
    if found is None and folder.exists():
        _log.warning("The converted network in %s is damaged; it is converted again.", folder)
    with contextlib.suppress(OSError):  # another user's folder may be read, not marked as used
        os.utime(folder / _SPEC)
    return found


def _read(folder: Path) -> Converted | None:
    """Return an entry whose digest is correct, or None."""
    try:
        content = json.loads((folder / _SPEC).read_text(encoding="utf-8"))
        if content["sha256"] != _digest(folder, content["spec"]):
            return None
        return Converted(folder / _MODEL, NetworkSpec.from_dict(content["spec"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _digest(folder: Path, spec: object) -> str:
    """Return a digest over the whole entry; one byte that changed would change disparities unnoticed."""
    digest = hashlib.sha256(json.dumps(spec, sort_keys=True).encode())
    for name in (_MODEL, _WEIGHTS):
        digest.update(hashlib.sha256((folder / name).read_bytes()).digest())
    return digest.hexdigest()


def store(key: str, write: Callable[[Path], NetworkSpec]) -> Converted | None:
    """Keep what `write` makes of the path it is given; None if the folder cannot be written.

    A folder is filled under another name and then renamed: readers see all of it or nothing.  Of two
    processes that convert at once, the second finds the first one's result in its place and takes that.
    """
    target = cache_folder() / "openvino" / key
    try:
        with temporary_folder(target.parent) as temporary:
            entry = temporary / key
            entry.mkdir()
            spec = write(entry / _MODEL)
            content = {"spec": asdict(spec), "sha256": _digest(entry, asdict(spec))}
            (entry / _SPEC).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
            _publish(entry, target)
        _make_room(target)
    except OSError as error:
        _log.warning("The converted network is not kept in %s: %s", target.parent, error)
        return None
    return _read(target)


def _publish(entry: Path, target: Path) -> None:
    with locked_folder(target.parent):  # another process must not remove what this one has just put there
        if _read(target) is not None:
            return
        shutil.rmtree(target, ignore_errors=True)  # damaged, if it exists
        entry.rename(target)


def discard(converted: Converted) -> None:
    """Remove a converted network."""
    shutil.rmtree(converted.model.parent, ignore_errors=True)


def _make_room(newest: Path) -> None:
    """Remove what was used longest ago: every change of weights or code leaves an entry behind."""
    last_use = {}
    for spec in newest.parent.glob(f"[!.]*/{_SPEC}"):
        with contextlib.suppress(OSError):  # another process was faster
            last_use[spec.parent] = spec.stat().st_mtime
    last_use.pop(newest, None)
    for folder in sorted(last_use, key=last_use.__getitem__, reverse=True)[KEPT - 1 :]:
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _code() -> str:
    """A digest of the code that defines the networks: another definition is another converted network."""
    package = Path(__file__).resolve().parents[2]
    files = [*(package / "models").rglob("*.py"), *(package / "ops").rglob("*.py")]
    files += [package / "engines" / name for name in ("graph.py", "openvino/conversion.py")]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()
