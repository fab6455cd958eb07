"""Environments that contain the wheel and what it declares to need, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    folder: Path

    @property
    def python(self) -> Path:
        return self._program("python")

    @property
    def aanet(self) -> Path:
        return self._program("aanet")

    def _program(self, name: str) -> Path:
        return self.folder / ("Scripts" if os.name == "nt" else "bin") / name

    @property
    def packages(self) -> Path:
        """The folder of its packages."""
        (found,) = self.folder.rglob("site-packages")
        return found

    @property
    def variables(self) -> dict[str, str]:
        """The variables for its programs: nothing leads to the packages or caches of another environment."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV_"))}
        return {**kept, "PYTHONNOUSERSITE": "1", "AANET_CACHE": str(self.folder / "cache")}

    def run(self, *command: object, fails: bool = False) -> str:
        """Run a program; return what it prints, and with `fails` what it complains about with exit code 2."""
        words = [str(word) for word in command]
        done = subprocess.run(
            words, cwd=self.folder, env=self.variables, capture_output=True, text=True, timeout=1800
        )
        assert done.returncode == (2 if fails else 0), (words, done.stdout, done.stderr)
        return done.stderr if fails else done.stdout


def build_distributions(folder: Path, isolated: bool = False) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it; isolated, with tools that pip downloads."""
    options = [] if isolated else ["--no-isolation", "--skip-dependency-check"]
    command = [sys.executable, "-m", "build", *options, "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def linked_environment(folder: Path, wheel: Path, extras: Iterable[str] = ()) -> Environment:
    """An environment with the wheel installed and its requirements linked from the running environment."""
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    environment = Environment(folder)
    pip = [sys.executable, "-m", "pip", "--python", str(environment.python)]
    options = ["--quiet", "--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", *options, str(wheel)], check=True, timeout=600)
    (wheel_metadata,) = metadata.distributions(name="aanet", path=[str(environment.packages)])
    _link(closure(wheel_metadata, extras), environment.packages)
    return environment


def closure(wheel: metadata.Distribution, extras: Iterable[str]) -> set[str]:
    """Return the names of the packages that pip would install for the wheel with these extras."""
    found: dict[str, set[str]] = {}
    waiting = [(wheel, extra) for extra in ("", *extras)]
    while waiting:
        distribution, extra = waiting.pop()
        for requirement in map(Requirement, distribution.requires or []):
            if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
                continue
            name = canonicalize_name(requirement.name)
            known = found.setdefault(name, set())
            for wanted in {"", *requirement.extras} - known:
                known.add(wanted)
                waiting.append((metadata.distribution(requirement.name), wanted))
    return set(found)


def _link(names: set[str], target: Path) -> None:
    """Link the files of installed packages; a folder as a whole if no other package has files in it."""
    wanted: set[PurePosixPath] = set()
    shared: set[PurePosixPath] = set()
    places: dict[PurePosixPath, Path] = {}
    for distribution in metadata.distributions():
        mine = canonicalize_name(distribution.metadata["Name"]) in names
        for file in distribution.files or []:
            path = PurePosixPath(file)
            if ".." in path.parts or path.is_absolute():
                continue  # programs and manuals
            if mine:
                wanted.add(path)
                places[path] = Path(str(distribution.locate_file("")))
            else:
                shared.update(path.parents)
    for path in wanted:
        whole = [parent for parent in reversed(path.parents) if parent not in shared and parent.name]
        link = target / (whole[0] if whole else path)
        if not link.exists() and not link.is_symlink():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(places[path] / (whole[0] if whole else path))
