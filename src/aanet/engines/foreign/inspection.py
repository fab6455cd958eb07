"""Inspecting a foreign network: once per file, in a child process with limits of memory and of time.

The file comes from a stranger. Before this process opens it, a child has opened it and run it on a real pair;
what crashes, hangs or takes all memory costs the child. The result is kept in the cache folder, by the digest
of the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aanet.engines.foreign.files import NetworkFile, read_network_file
from aanet.engines.foreign.graph import Graph
from aanet.engines.foreign.spec import ForeignSpec, Table
from aanet.engines.openvino.cache import cache_folder
from aanet.errors import AanetError, ReadError, UnsupportedError
from aanet.inference.memory import available_memory
from aanet.io.atomic import atomic_path
from aanet.version import __version__

SECONDS = 300.0  # of a trial
RIGHT = 3.0  # pixels at half size below which a reading is right; a constant disparity has about 7
_SHARE = 0.75  # of the free memory that a trial may take
_LEAST_MEMORY = 2_000_000_000
_MAX_ANSWER = 20_000_000
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Inspection:
    """What is known of a foreign network.

    Attributes:
        graph: Its inputs and outputs, and the engine that runs it.
        tried: The readings that were tried with their errors in pixels, the best first; at most a hundred.
        spec: How to feed and read it; None if it was not recognized.
        problem: Why it was not, as a sentence.
        origin: Where the spec comes from: a file, a ready-made spec, or "found by trying".
        bytes_per_pixel: Peak memory of a prediction.
    """

    graph: Graph
    tried: tuple[tuple[Table, float], ...]
    spec: ForeignSpec | None
    problem: str
    origin: str
    bytes_per_pixel: int


def inspect_network(
    file: NetworkFile, given: Table | None, engine: str | None = None, origin: str = ""
) -> Inspection:
    """Return what is known of a network, from the cache or else from a trial.

    Args:
        file: The network.
        given: What is known of its spec; None to look among the ready-made ones and to try.
        engine: The engine that must run it; None for the first that can.
        origin: Where `given` comes from.
    """
    record = cache_folder() / "foreign" / f"{_key(file, given, engine)}.json"
    known = _read(record)
    if known is None:
        answer = _ask_child(file, {"given": given, "engine": engine, "origin": origin})
        known = _parse(answer)
        if known.spec is not None:
            _write(record, answer)
    return known


def _key(file: NetworkFile, given: Table | None, engine: str | None) -> str:
    from importlib.metadata import version

    parts = (
        file.digest,
        json.dumps(given, sort_keys=True),
        str(engine),
        version("openvino"),
        __version__,
        _code(),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _code() -> str:
    """A digest of what decides the result: another way to try is another result."""
    folder, digest = Path(__file__).resolve().parent, hashlib.sha256()
    for path in sorted([*folder.glob("*.py"), *folder.glob("ready_made/*.toml")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _ask_child(file: NetworkFile, question: Mapping[str, Any]) -> dict[str, Any]:
    """Let a child process open and run the network, and return its answer."""
    message = json.dumps({**question, "path": os.fspath(file.path.absolute()), "memory": _memory_limit()})
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", "from aanet.engines.foreign.child import main; main()"]
    try:
        child = subprocess.run(
            command,
            input=message.encode(),
            capture_output=True,
            env=environment,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ReadError(
            f"{file.path} could not be tried within {SECONDS:g} seconds; describe it completely in a spec "
            "(--network-spec), so that it is run only once, or use a smaller network."
        ) from None
    try:
        answer: dict[str, Any] = json.loads(child.stdout[:_MAX_ANSWER])
        if "error" in answer:
            kind = UnsupportedError if answer.get("unsupported") else ReadError
            raise kind(str(answer["error"]))
        if answer["digest"] != file.digest:
            raise ReadError(f"{file.path} was changed while it was read; try again.")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, AanetError):
            raise
        _log.info("The trial of %s ended with: %s", file.path, child.stderr[-2000:].decode(errors="replace"))
        raise ReadError(
            f"{file.path} cannot be run: the process that tried it ended with {_end(child.returncode)}."
        ) from None
    return answer


def _memory_limit() -> int:
    return max(int(_SHARE * available_memory()), _LEAST_MEMORY)


def _end(code: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"exit code {code}"


def _parse(answer: Mapping[str, Any]) -> Inspection:
    spec = answer["spec"]
    return Inspection(
        graph=Graph.from_dict(answer["graph"]),
        tried=tuple((table, math.inf if error is None else error) for table, error in answer["tried"]),
        spec=None if spec is None else ForeignSpec.from_table(spec, "The cached spec"),
        problem=answer["problem"],
        origin=answer["origin"],
        bytes_per_pixel=int(answer["bytes_per_pixel"]),
    )


def _read(record: Path) -> Inspection | None:
    """Return a cached inspection; None if there is none, or if it is damaged."""
    try:
        return _parse(json.loads(record.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _write(record: Path, answer: Mapping[str, Any]) -> None:
    try:
        with atomic_path(record) as temporary:
            temporary.write_text(json.dumps(answer, indent=1) + "\n", encoding="utf-8")
    except AanetError as error:
        _log.warning("The inspection of the network could not be cached: %s", error)


def inspect_file(
    path: Path, given: Table | None, engine: str | None = None, origin: str = ""
) -> tuple[NetworkFile, Inspection]:
    """Read, check and inspect a file."""
    file = read_network_file(path)
    return file, inspect_network(file, given, engine, origin)
