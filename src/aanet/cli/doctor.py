"""`aanet doctor`: what is installed here, what it can do, and whether it computes rightly."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

PACKAGES = ("aanet", "torch", "openvino", "numpy", "opencv-python-headless", "safetensors", "scikit-image")
CPU_FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "avx512_vnni", "asimd", "bf16")


@dataclass(frozen=True)
class Finding:
    """One line of the report; `ok` is None where there is nothing to pass or fail."""

    what: str
    found: str
    ok: bool | None = None


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show versions, processor, devices, engines and caches, and test that matching works here.

    Exit code 1 if a test fails.
    """
    with Console(stderr=True).status("Looking around and testing …"):
        bf16 = _bf16()  # first: broken AMX can only be switched off before the libraries are loaded
        sections = {
            "Versions": _versions(),
            "Hardware": [*_hardware(), *bf16],
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
    for package in PACKAGES:
        try:
            findings.append(Finding(package, metadata.version(package)))
        except metadata.PackageNotFoundError:
            findings.append(Finding(package, "not installed", ok=False))
    return findings


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
            f"{processor.name}, {os.cpu_count()} threads; {', '.join(flags) or 'no known extensions'}",
        ),
        Finding("free memory", f"{gigabytes:.1f} GB"),
        Finding("torch threads", str(torch.get_num_threads())),
    ]
    devices = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    devices += ["Apple GPU (mps)"] if torch.backends.mps.is_available() else []
    findings.append(Finding("torch devices", ", ".join(["cpu", *devices])))
    return [*findings, Finding("engines", _engines())]


def _engines() -> str:
    from aanet.engines.factory import fitting_engines
    from aanet.engines.table import ENGINES

    states = {True: "", False: " (not installed)"}
    names = [f"{name}{states[card.installed]}" for name, card in ENGINES.items()]
    return f"{', '.join(names)}; by default {fitting_engines()[0]}"


def _bf16() -> list[Finding]:
    """Whether bf16 can be used, tried again: also where what was kept came from a bad moment."""
    from aanet.engines.bf16_support import bf16_support
    from aanet.engines.table import ENGINES

    findings = []
    for name, card in ENGINES.items():
        if card.bf16 is None:
            continue
        support = bf16_support(card.bf16, fresh=True)
        tried = card.auto_bf16 and support.faster
        default = "a trial with each file of weights decides" if tried else "the default is float32"
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
        Finding("cache", f"{folder}: {networks} converted networks, {size:.0f} MB (AANET_CACHE moves it)"),
        Finding("bundled weights", ", ".join(files.bundled_names()) or "none yet"),
    ]


def _self_test() -> list[Finding]:
    """A plane of known disparity, and engines that must agree with torch."""
    return [_plane_test(), *_parity_tests()]


def _plane_test() -> Finding:
    import numpy as np

    from aanet.matcher import StereoMatcher

    texture = np.random.default_rng(0).integers(0, 256, (96, 224, 3), np.uint8)
    left, right, truth = texture[:, :192], texture[:, 20:212], 20
    disparity = StereoMatcher("sgbm", max_disparity=64)(left, right, inspect=False).disparity
    error = float(np.abs(disparity[:, 24:] - truth).mean())
    return Finding("sgbm on a plane", f"{truth} px found to {error:.3f} px", ok=error < 0.1)


def _parity_tests() -> list[Finding]:
    """Run a small network on every engine that is installed, and compare it with torch."""
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
            findings.append(
                Finding(f"{name} against torch", f"differ by at most {gap:.1e} px", ok=gap < 1e-3)
            )
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
