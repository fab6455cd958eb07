"""Kill a process at each of its changes to the file system, then look at what is left and try to go on.

    python crash_points.py SCENARIO FOLDER [EVERY]

A scenario does something in a folder and then something that must work after an interruption. It runs once
without interruption, then once for each change (a file opened for writing, a rename, a removal, a new
folder), killed by SIGKILL just before it; EVERY is the distance of the changes that are tried. The result is
printed as JSON. Every run is a fork, so that libraries are imported once.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
Files = dict[str, str]  # names and digests


class Scenario(NamedTuple):
    prepare: Callable[[Path], Any]  # not interrupted
    act: Callable[[Path], Any]
    go_on: Callable[[Path], Any]  # after an interruption; what it returns is part of the result
    ignored: str = "tensorboard"  # names of files whose content differs from run to run


def sweep(scenario: Scenario, root: Path, every: int = 1) -> dict[str, Any]:
    """Run a scenario with all interruptions."""
    start = root / "start"
    start.mkdir(parents=True)
    scenario.prepare(start)
    whole = _copy(start, root / "work")
    changes, modules = _fork(lambda: (_count(whole, lambda: scenario.act(whole)), [*sys.modules]))["returned"]
    result: dict[str, Any] = {"changes": changes, "before": files(start, scenario), "runs": []}
    result["whole"] = files(whole, scenario)
    for module in modules:  # once, instead of in each run
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    for number in range(1, changes + 1, every):
        folder = _copy(start, root / "work")  # the same path each time, because files may contain it
        killed = _fork(lambda: _count(folder, lambda: scenario.act(folder), number))  # noqa: B023 - called at once
        run = {"change": number, "signal": killed["signal"], "left": files(folder, scenario)}
        run |= {"went_on": _fork(lambda: scenario.go_on(folder))}  # noqa: B023
        run |= {"after": files(folder, scenario), "leftovers": len(list(folder.rglob(".aanet-*")))}
        result["runs"].append(run)
    return result


def files(folder: Path, scenario: Scenario) -> Files:
    """Return the digests of all files but temporary ones."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(_content(path)).hexdigest()[:16]
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".aanet-" not in str(path) and scenario.ignored not in str(path)
    }


def _content(path: Path) -> bytes:
    """Return the content of a file; safetensors writes its metadata in random order, which is sorted here."""
    content = path.read_bytes()
    if path.suffix != ".safetensors" or content[8:9] != b"{":
        return content
    end = 8 + int.from_bytes(content[:8], "little")
    return json.dumps(json.loads(content[8:end]), sort_keys=True).encode() + content[end:]


def command(*words: object) -> None:
    """Run `aanet` and raise an error unless it succeeds."""
    from aanet.cli.main import main

    sys.argv = ["aanet", *map(str, words)]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"exit code {end.code}") from end


def _copy(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return target


def _fork(action: Callable[[], Any]) -> dict[str, Any]:
    """Run something in a child process; returns its result or error, or the signal that ended it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            outcome = {"returned": action(), "error": None}
        except BaseException:
            outcome = {"returned": None, "error": traceback.format_exc()}
        os.write(writing, json.dumps(outcome).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return {"signal": ended, **(json.loads(answer) if answer else {})}


def _count(folder: Path, action: Callable[[], Any], last: int | None = None) -> int:
    """Count the changes under a folder that an action makes; this process is killed before the last one."""
    count = 0

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        opened = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING
        if not (opened or event in CHANGES):
            return
        name = str(arguments[0])
        if not name.startswith("/") or name.startswith(str(folder)):  # rmtree uses names inside a folder
            count += 1
            if count == last:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    action()
    return count


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from helpers import crash_scenarios

    wanted: Scenario = getattr(crash_scenarios, sys.argv[1])
    print(json.dumps(sweep(wanted, Path(sys.argv[2]).resolve(), int(*sys.argv[3:] or ["1"]))))
