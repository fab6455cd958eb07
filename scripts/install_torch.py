"""Install the pinned torch without gigabytes of CUDA where no GPU could use them.

On Linux, the package index has only builds with CUDA; the builds for the CPU are in PyTorch's own index,
which is used if it answers within seconds. Otherwise, and on other systems, the plain pin is installed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PATIENCE_SECONDS = 4.0
CONSTRAINTS = Path(__file__).resolve().parents[1] / "constraints.txt"


def pinned(constraints: str) -> str:
    """Return the requirement of torch in the text of constraints.txt."""
    found = re.search(r"^torch==\S+", constraints, re.MULTILINE)
    if found is None:
        raise SystemExit(f"{CONSTRAINTS.name} has no line torch==VERSION.")
    return found[0]


def answers(address: str, patience: float = PATIENCE_SECONDS) -> bool:
    """Whether an index answers in time; a name server that is silent counts as no answer."""
    found: list[bool] = []

    def ask() -> None:
        try:
            with urllib.request.urlopen(f"{address}/torch/", timeout=patience) as page:
                found.append(page.status == 200)
        except (OSError, ValueError):
            found.append(False)

    # urlopen has no limit for the name server, so the thread may outlive the question.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(patience)
    return found == [True]


def wants_cpu_build(platform: str = sys.platform) -> bool:
    """Whether the package index would bring CUDA (Linux only) and no NVIDIA driver is there to use it."""
    return platform == "linux" and shutil.which("nvidia-smi") is None


def commands(torch: str, cpu_build: bool) -> list[list[str]]:
    """Return the arguments of pip to try one after the other."""
    plain = ["install", "--quiet", torch]
    # Without dependencies: they follow from the package index, at the versions of constraints.txt.
    from_cpu_index = ["install", "--quiet", "--no-deps", "--index-url", CPU_INDEX, torch]
    return [from_cpu_index, plain] if cpu_build else [plain]


def install(run: Callable[[list[str]], int], is_reachable: Callable[[str], bool] = answers) -> int:
    """Install torch and return the exit code of pip."""
    cpu_build = wants_cpu_build() and is_reachable(CPU_INDEX)
    code = 1
    for arguments in commands(pinned(CONSTRAINTS.read_text(encoding="utf-8")), cpu_build):
        code = run(arguments)
        if code == 0:
            break
    return code


if __name__ == "__main__":
    sys.exit(install(lambda arguments: subprocess.call([sys.executable, "-m", "pip", *arguments])))
