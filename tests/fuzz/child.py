"""The process that reads mutated files, with limits of memory and of processor time.

Its arguments are the module with the readers, and the seconds of processor time that a case may take.

Each case is a line of JSON with the kind and the size, and the content; each answer is a line of JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from aanet.errors import AanetError

if TYPE_CHECKING:
    from fuzz.readers import Kind, Reader

MEMORY = 4_000_000_000  # bytes that the process may allocate; the libraries alone take up to one
CASE_MEMORY = 1_000_000_000  # bytes that a case may use
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def main() -> None:
    """Answer cases from stdin until it ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # libraries print to stdout, too
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", category=DeprecationWarning, module="torch|onnx|openvino")
    kinds: dict[str, Kind] = importlib.import_module(sys.argv[1]).KINDS
    seconds = float(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="aanet-fuzz-") as folder:
        for line in sys.stdin.buffer:
            case = json.loads(line)
            (place := Path(folder) / case["kind"]).mkdir(exist_ok=True)
            content = sys.stdin.buffer.read(case["size"])
            found = read(kinds[case["kind"]].read, content, place, seconds)
            print(json.dumps(found), file=answers, flush=True)


def read(reader: Reader, data: bytes, folder: Path, seconds: float) -> dict[str, str | bool]:
    """Read one file: whether it was accepted, and what failed."""
    before = _memory("VmRSS")
    if _CLEAR.exists():
        _CLEAR.write_text("5")  # the peak starts again
    found: dict[str, str | bool] = {"accepted": True}
    signal.setitimer(signal.ITIMER_PROF, seconds)  # nothing handles it: it kills native code as well
    try:
        reader(data, folder)
    except AanetError as error:
        found = {"accepted": False}
        message = str(error)
        if not re.fullmatch(r"[^\n\ud800-\udfff]{10,1000}", message):
            found["failure"] = "the message of the error is not one plain sentence"
            found["detail"] = repr(message)[:2000]
    except BaseException as error:  # whatever a reader lets through
        last = traceback.extract_tb(error.__traceback__)[-1]
        found["failure"] = f"{type(error).__name__} in {Path(last.filename).name}, {last.name}"
        found["detail"] = "".join(traceback.format_exception(error))[-3000:]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    used = _memory("VmHWM") - before
    if used > CASE_MEMORY:
        found["failure"], found["detail"] = "too much memory", f"{used / 1e9:.1f} GB"
    return found


def _memory(field: str) -> int:
    if not _CLEAR.exists():
        return 0
    match = re.search(rf"{field}:\s+(\d+) kB", _STATUS.read_text())
    return int(match[1]) * 1000 if match else 0


if __name__ == "__main__":
    main()
