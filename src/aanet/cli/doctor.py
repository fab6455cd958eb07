"""`aanet doctor`: report what is installed, and test that it computes correct results."""

from __future__ import annotations

import json
import platform
import re
from dataclasses import asdict, dataclass
from importlib import metadata

import typer
from rich.console import Console
from rich.table import Table

from aanet.cli.console import status
from aanet.cli.options import JsonOutput

TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
CPU_FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "avx512_vnni", "asimd", "bf16")


@dataclass(frozen=True)
class Finding:
    """One line of the report; `ok` is None where nothing is tested."""

    what: str
    found: str
    ok: bool | None = None


def doctor(as_json: JsonOutput = False) -> None:
    """Report versions, hardware, engines and caches, and test that matching works on this machine.

    The exit code is 1 if a required package is missing or a test fails. Attach the output to bug reports.

    Example: aanet doctor
    """
    with status("Examining and testing the installation"):
        bf16 = _bf16()  # first: broken AMX can only be disabled before the libraries are imported
        sections = {
            "Versions": _versions(),
            "Extras": _extras(),
            "Hardware": _hardware(),
            "Engines": [*_engines(), *bf16],
            "Files": _files(),
            "Self-test": _self_test(),
        }
    if as_json:
        content = {title: [asdict(finding) for finding in findings] for title, findings in sections.items()}
        print(json.dumps(content, indent=2))
    else:
        _print(sections)
    if any(finding.ok is False for findings in sections.values() for finding in findings):
        raise typer.Exit(1)


def _versions() -> list[Finding]:
    findings = [Finding("python", f"{platform.python_version()}, {platform.platform()}")]
    for package in ["aanet", *_requirements().get("", [])]:
        version = _version(package)
        findings.append(Finding(package, version or "not installed", ok=None if version else False))
    return findings


def _extras() -> list[Finding]:
    """The optional packages, by the extra that installs them."""
    findings = []
    for extra, packages in _requirements().items():
        versions = {package: _version(package) for package in packages}
        missing = [package for package, version in versions.items() if version is None]
        found = ", ".join(f"{package} {version}" for package, version in versions.items() if version)
        if missing:
            found += f"{'; ' if found else ''}without {', '.join(missing)}: pip install 'aanet[{extra}]'"
        if extra:
            findings.append(Finding(extra, found))
    return findings


def _requirements() -> dict[str, list[str]]:
    """The packages of every extra as the metadata of aanet list them; those of "" are required."""
    by_extra: dict[str, list[str]] = {}
    try:
        requirements = metadata.requires("aanet") or []
    except metadata.PackageNotFoundError:  # a source tree that was not installed
        requirements = []
    for requirement in requirements:
        package, marker = re.match(r"[\w.-]+", requirement), requirement.partition(";")[2]
        extra = re.search(r"extra == ['\"]([\w-]+)", marker)
        name = extra[1] if extra else ""
        if package and name != "dev" and "python_version" not in marker:
            by_extra.setdefault(name, []).append(package[0])
    return by_extra


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _hardware() -> list[Finding]:
    import os

    import torch

    from aanet.engines.processor import this_processor
    from aanet.inference.memory import available_memory

    processor = this_processor()
    flags = [flag for flag in CPU_FLAGS if flag in (processor.flags or ())]
    gigabytes = available_memory() / 1e9
    findings = [
        Finding(
            "processor",
            f"{processor.name}, {os.cpu_count()} threads; {', '.join(flags) or 'no known vector extensions'}",
        ),
        Finding("free memory", f"{gigabytes:.1f} GB"),
        Finding("torch threads", str(torch.get_num_threads())),
    ]
    devices = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    devices += ["Apple GPU (mps)"] if torch.backends.mps.is_available() else []
    return [*findings, Finding("torch devices", ", ".join(["cpu", *devices])), *_superfluous_cuda()]


def _superfluous_cuda() -> list[Finding]:
    """Notice a torch with gigabytes of CUDA that no GPU of this machine can use."""
    import torch

    cuda = torch.version.cuda
    if cuda is None or torch.cuda.device_count() > 0:
        return []
    version = torch.__version__.partition("+")[0]
    command = f"pip install --force-reinstall --no-deps torch=={version} --index-url {TORCH_CPU_INDEX}"
    found = f"for CUDA {cuda}, but it finds no GPU here; the smaller build for the CPU: {command}"
    return [Finding("torch build", found)]


def _engines() -> list[Finding]:
    from aanet.engines.factory import fitting_engines
    from aanet.engines.table import ENGINES

    default = fitting_engines()[0]
    findings = []
    for name, card in ENGINES.items():
        kinds = ["weight", *card.reads] if card.from_weights is not None else card.reads
        found = f"runs {' and '.join(kinds)} files"
        found += ", the default" if name == default else ""
        found += "" if card.installed else f"; not installed: pip install 'aanet[{card.extra}]'"
        findings.append(Finding(name, found))
    return findings


def _bf16() -> list[Finding]:
    """Whether bf16 can be used; tested anew, because a stored result may be from a busy moment."""
    from aanet.engines.bf16_support import bf16_support
    from aanet.engines.table import ENGINES

    findings = []
    for name, card in ENGINES.items():
        if card.bf16 is None:
            continue
        support = bf16_support(card.bf16, fresh=True)
        tested = card.auto_bf16 and support.faster
        default = "used by default where it is faster and accurate" if tested else "float32 by default"
        findings.append(Finding(f"bf16 with {name}", f"{support.reason}; {default}"))
    return findings


def _files() -> list[Finding]:
    from aanet.engines.openvino.cache import cache_folder
    from aanet.models.weights import files

    folder = cache_folder()
    kept = [file for file in folder.rglob("*") if file.is_file()]
    networks = len(list(folder.glob("openvino/*/spec.json")))
    size = sum(file.stat().st_size for file in kept) / 1e6
    return [
        Finding("cache", f"{folder}: {networks} converted networks, {size:.0f} MB (AANET_CACHE sets it)"),
        Finding("bundled weights", ", ".join(files.bundled_names()) or "none"),
    ]


def _self_test() -> list[Finding]:
    """Match a plane of known disparity, and compare the engines with torch."""
    return [_plane_test(), *_parity_tests()]


def _plane_test() -> Finding:
    import numpy as np

    from aanet.matcher import StereoMatcher

    texture = np.random.default_rng(0).integers(0, 256, (96, 224, 3), np.uint8)
    left, right, truth = texture[:, :192], texture[:, 20:212], 20
    disparity = StereoMatcher("sgbm", max_disparity=64)(left, right, inspect=False).disparity
    error = float(np.abs(disparity[:, 24:] - truth).mean())
    return Finding("sgbm on a plane", f"mean error {error:.3f} px", ok=error < 0.1)


def _parity_tests() -> list[Finding]:
    """Run a small network on every installed engine and compare the disparities with torch."""
    import numpy as np

    from aanet.engines.factory import fitting_engines, open_engine
    from aanet.models import zoo

    network = zoo.build("stereonet_aa", max_disparity=24, seed=0)
    left, right = np.random.default_rng(0).random((2, 1, 3, 48, 96), np.float32)
    reference, _ = open_engine(network, engine="torch", device="cpu")(left, right)
    findings = []
    for name in fitting_engines("cpu"):
        if name != "torch":
            disparity, _ = open_engine(network, engine=name)(left, right)
            gap = float(np.abs(reference - disparity).max())
            findings.append(Finding(f"{name} and torch", f"maximum difference {gap:.1e} px", ok=gap < 1e-3))
    return findings


def _print(sections: dict[str, list[Finding]]) -> None:
    console = Console()
    marks = {None: "", True: "[green]✓[/green]", False: "[red]✗[/red]"}
    for title, findings in sections.items():
        table = Table(title=title, title_justify="left", show_header=False, box=None, title_style="bold")
        table.add_column(min_width=24)
        table.add_column(overflow="fold")
        table.add_column()
        for finding in findings:
            table.add_row(f"  {finding.what}", finding.found, marks[finding.ok])
        console.print(table)
