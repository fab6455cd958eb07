"""Runs of commands on a cluster, and what they leave."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner, Result

from aanet.cli.main import app
from aanet.io.images import write_image

SGBM = ("--model", "sgbm", "--max-disparity", "16", "--save", "disparity.npy,color")


def run(*words: object) -> Result:
    result = CliRunner().invoke(app, [*map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def put_pairs(folder: Path, count: int, height: int = 24, width: int = 56) -> Path:
    """Pairs of noise with a disparity of 4, and a list of them."""
    for number in range(count):
        scene = np.random.default_rng(number).integers(0, 256, (height, width + 4, 3), np.uint8)
        write_image(folder / f"left/{number}.png", scene[:, :width])
        write_image(folder / f"right/{number}.png", scene[:, 4:])
    with (folder / "pairs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("left", "right"))
        writer.writerows((f"left/{number}.png", f"right/{number}.png") for number in range(count))
    return folder / "pairs.csv"


def files(folder: Path) -> dict[str, bytes]:
    """All files but the manifest, including temporary ones."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {path.relative_to(folder).as_posix(): path for path in found}
    return {name: path.read_bytes() for name, path in names.items() if not name.startswith("manifest/")}


def rows(output: object) -> list[dict[str, Any]]:
    from aanet.cluster import read_manifest

    found: list[dict[str, Any]] = read_manifest(str(output)).to_pylist()
    return found
