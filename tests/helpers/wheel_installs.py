"""Install the wheel with pip into fresh environments, without extras and with each, and use it.

`make test-wheel` runs it; `make test-wheel EXTRAS="none web"` tests some only. It takes minutes and downloads
what pip has not cached.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from helpers.wheel_commands import BY_EXTRA, hints_for_extras, without_extras
from helpers.wheel_environment import ROOT, Environment, build_distributions

NONE = "none"


def install(folder: Path, wheel: Path, extra: str) -> Environment:
    """Make an environment as a user would: torch first, then the wheel."""
    venv.create(folder, with_pip=True)
    environment = Environment(folder)
    environment.run(environment.python, ROOT / "scripts/install_torch.py")
    wanted = f"aanet @ {wheel.as_uri()}" if extra == NONE else f"aanet[{extra}] @ {wheel.as_uri()}"
    pip = (environment.python, "-m", "pip")
    environment.run(*pip, "install", "--quiet", "-c", ROOT / "constraints.txt", wanted)
    environment.run(*pip, "check")
    return environment


def main() -> None:
    """Test the extras that the command line names, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extras", nargs="*", metavar="EXTRA", help=f"{NONE}, {', '.join(BY_EXTRA)}")
    extras = parser.parse_args().extras or [NONE, *BY_EXTRA]
    if unknown := set(extras) - {NONE, *BY_EXTRA}:
        parser.error(f"there is no extra {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="aanet-wheel-") as folder:
        wheel, sdist = build_distributions(Path(folder), isolated=True)
        subprocess.run([sys.executable, "-m", "twine", "check", "--strict", wheel, sdist], check=True)
        for extra in extras:
            start = time.monotonic()
            with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as own:
                environment = install(Path(own), wheel, extra)
                installed = time.monotonic()
                for use in (without_extras, hints_for_extras) if extra == NONE else (BY_EXTRA[extra],):
                    use(environment)
            times = f"installed in {installed - start:.0f} s, used for {time.monotonic() - installed:.0f} s"
            print(f"{wheel.name}, extra {extra}: {times}", flush=True)


if __name__ == "__main__":
    main()
