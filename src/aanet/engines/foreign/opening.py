"""Opening a foreign network as an engine."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path

from aanet.engines.foreign import ready_made
from aanet.engines.foreign.adapter import ForeignEngine
from aanet.engines.foreign.inspection import RIGHT, inspect_file
from aanet.engines.foreign.spec import ForeignSpec, Table, read_table
from aanet.engines.table import Options
from aanet.errors import InputError, UnsupportedError, did_you_mean

_log = logging.getLogger(__name__)


def open_foreign(
    path: Path,
    network_spec: str | os.PathLike[str] | ForeignSpec | None,
    options: Options,
    engine: str | None,
) -> ForeignEngine:
    """Open a network that this package did not export.

    Args:
        path: The file.
        network_spec: As in `StereoMatcher`.
        options: Precision, threads and search range.
        engine: "openvino" or "onnxruntime"; None for the first that can run it.
    """
    from aanet.engines.foreign.running import open_runner

    given, origin = find_spec(path, network_spec)
    file, found = inspect_file(path, given, engine, origin)
    if found.spec is None:
        raise UnsupportedError(found.problem)
    spec = with_range(found.spec, options.max_disparity, path)
    if found.tried[0][1] >= RIGHT:
        _log.warning(
            "%s has an error of %.1f pixels on the Motorcycle pair at half size with %s; is the spec right?",
            path,
            found.tried[0][1],
            found.origin,
        )
    return ForeignEngine(open_runner(file, found.graph.engine, options), spec, found.bytes_per_pixel)


def find_spec(
    path: Path, network_spec: str | os.PathLike[str] | ForeignSpec | None
) -> tuple[Table | None, str]:
    """Return what is known of a network's spec and where it comes from; None if nothing is.

    Args:
        path: The network; a TOML file of its name beside it is its spec.
        network_spec: A TOML file, the name of a ready-made spec, or a spec; None for the file beside it.
    """
    if isinstance(network_spec, ForeignSpec):
        return network_spec.to_table(), "the given spec"
    if network_spec is None:
        beside = path.with_suffix(".toml")
        return (read_table(beside), str(beside)) if beside.is_file() else (None, "")
    known = ready_made.names()
    if str(network_spec) in known:
        return ready_made.table(str(network_spec)), f"the ready-made spec {network_spec}"
    if not Path(network_spec).suffix and not Path(network_spec).exists():
        hint = did_you_mean(str(network_spec), known)
        raise InputError(
            f"There is no ready-made spec {str(network_spec)!r}{hint}; give a TOML file, or one of "
            f"{', '.join(known)}."
        )
    return read_table(Path(network_spec)), str(network_spec)


def with_range(spec: ForeignSpec, max_disparity: int | None, path: Path) -> ForeignSpec:
    """Return the spec with a given search range, which must not contradict it."""
    if max_disparity is None:
        return spec
    if spec.max_disparity not in (None, max_disparity):
        raise UnsupportedError(
            f"{path} has a maximum disparity of {spec.max_disparity}, not {max_disparity}."
        )
    return replace(spec, max_disparity=max_disparity)
