"""The child process that opens and tries a foreign network; see `inspection`."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Any

_MAX_TRIED = 100


def main() -> None:
    """Read a question from standard input and print the answer as JSON."""
    question = json.loads(sys.stdin.read())
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not get into the answer
    _limit(question["memory"])
    from aanet.errors import AanetError, UnsupportedError

    try:
        answer = _answer(question)
    except AanetError as error:
        answer = {"error": str(error), "unsupported": isinstance(error, UnsupportedError)}
    except MemoryError:
        answer = {"error": f"{question['path']} needs more memory than is free."}
    answers.write(json.dumps(answer))
    answers.flush()


def _limit(memory: int) -> None:
    """Let this process take so much memory and leave no core file; Windows has no such limits."""
    from aanet.engines.bf16_probe import disable_core_dumps

    disable_core_dumps()
    if sys.platform == "win32":
        return
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    limit = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    from aanet.engines.foreign import ready_made
    from aanet.engines.foreign.files import read_network_file
    from aanet.engines.foreign.inspection import RIGHT
    from aanet.engines.foreign.recognition import Recognition, recognize
    from aanet.engines.foreign.running import open_runner
    from aanet.engines.table import Options

    file = read_network_file(Path(question["path"]))
    runner = open_runner(file, question["engine"], Options(precision="float32"))
    given, origin, name = question["given"], question["origin"], file.path.stem
    found: Recognition | None = None
    if given is None:
        fitting = ready_made.fitting(runner.graph)
        if fitting is not None:
            found = recognize(runner, fitting[0], name)
            origin = f"ready-made: {fitting[1]}"
            if found.spec is None or found.tried[0].error >= RIGHT:
                found = None
    if found is None:
        origin = origin if given is not None else "found by trying"
        found = recognize(runner, given or {}, name)
    return {
        "digest": file.digest,
        "graph": runner.graph.as_dict(),
        "tried": [
            (each.spec.to_table(), each.error if math.isfinite(each.error) else None)
            for each in found.tried[:_MAX_TRIED]
        ],
        "spec": None if found.spec is None else found.spec.to_table(),
        "problem": found.problem,
        "origin": origin,
        "bytes_per_pixel": found.bytes_per_pixel,
    }
