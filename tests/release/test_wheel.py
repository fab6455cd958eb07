"""The wheel and the sdist: complete, valid, and enough for an environment that has nothing else."""

from __future__ import annotations

import ast
import itertools
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import aanet
from helpers.wheel_commands import BY_EXTRA, hints_for_extras, without_extras
from helpers.wheel_environment import ROOT, Environment, linked_environment

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOR_DEVELOPERS = {"dev", "docs"}  # extras without a command of the package
# torchvision is used on CUDA if the user has installed it; compression is in the standard library of 3.14.
UNDECLARED = {"torchvision", "compression"}

pytestmark = pytest.mark.slow
needs_links = pytest.mark.skipif(os.name == "nt", reason="Windows allows links to administrators only")


def packages_of(*requirements: list[str]) -> set[str]:
    """The normalized names of the packages in lists of requirements."""
    return {canonicalize_name(Requirement(each).name) for each in itertools.chain(*requirements)}


@pytest.fixture(scope="module")
def described(distributions: tuple[Path, Path]) -> Message:
    """The metadata of the wheel."""
    with zipfile.ZipFile(distributions[0]) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(wheel.read(name).decode())


def test_wheel_and_sdist_are_valid_for_the_package_index(distributions: tuple[Path, Path]) -> None:
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, distributions)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_has_every_file_of_the_package(distributions: tuple[Path, Path]) -> None:
    source = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src/aanet").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(distributions[0]) as wheel:
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert source <= packed
    assert not {name for name in packed if not name.startswith("aanet/")}


def test_the_sdist_has_what_building_and_testing_need(distributions: tuple[Path, Path]) -> None:
    with tarfile.open(distributions[1]) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    needed = (
        "pyproject.toml",
        "hatch_build.py",
        "constraints.txt",
        "Makefile",
        "LICENSE",
        "tests/conftest.py",
    )
    assert packed >= {*needed, "README.md", "scripts/install_torch.py", "hubconf.py", "CITATION.cff"}
    assert not [name for name in packed if "__pycache__" in name or name.startswith((".venv", "out/"))]


def test_the_version_is_that_of_the_package(described: Message, distributions: tuple[Path, Path]) -> None:
    assert described["Version"] == aanet.__version__
    assert all(path.name.startswith(f"aanet-{aanet.__version__}") for path in distributions)


def test_every_extra_has_a_command_that_is_tested() -> None:
    assert set(PROJECT["optional-dependencies"]) - FOR_DEVELOPERS == set(BY_EXTRA)


def test_every_import_is_declared() -> None:
    extras = PROJECT["optional-dependencies"]
    declared = packages_of(PROJECT["dependencies"], *(extras[name] for name in BY_EXTRA))
    owners = metadata.packages_distributions()
    undeclared = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            for module in {name.partition(".")[0] for name in names}:
                if module not in {*sys.stdlib_module_names, "aanet", *UNDECLARED}:
                    packages = {canonicalize_name(name) for name in owners.get(module, [])}
                    undeclared |= set() if packages & declared else {(path.name, module)}
    assert not undeclared


@pytest.fixture(scope="module")
def bare(distributions: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel without extras."""
    return linked_environment(tmp_path_factory.mktemp("bare"), distributions[0])


@needs_links
def test_without_extras_the_demo_runs(bare: Environment) -> None:
    without_extras(bare)


@needs_links
def test_without_extras_their_commands_say_what_to_install(bare: Environment) -> None:
    hints_for_extras(
        bare, ("web", "ros", "cluster")
    )  # make test-wheel tries all; the others import torch first


@needs_links
def test_what_is_not_declared_is_not_there(bare: Environment) -> None:
    code = "import aanet, importlib.util as u; print(aanet.__file__, u.find_spec('ray'))"
    found = bare.run(bare.python, "-c", code)
    assert str(bare.folder) in found
    assert found.split()[-1] == "None"
    installed = {path.name.lower() for path in bare.packages.iterdir()}
    assert {"torch", "openvino", "cv2"} <= installed
    assert not installed & {"pytest", "ray", "lightning", "onnx", "fastapi", "rosbags", "pip"}


@needs_links
@pytest.mark.parametrize(
    "extra",
    [
        pytest.param(extra, marks=[] if extra in ("web", "pretrained") else pytest.mark.extended)
        for extra in BY_EXTRA
    ],
)
def test_an_extra_brings_what_its_command_needs(
    extra: str, distributions: tuple[Path, Path], tmp_path: Path
) -> None:
    BY_EXTRA[extra](linked_environment(tmp_path / "env", distributions[0], [extra]))


def test_constraints_pin_every_requirement() -> None:
    pins = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    pinned = {canonicalize_name(name) for name in pins}
    required = packages_of(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    assert required - pinned <= {"aanet"}
