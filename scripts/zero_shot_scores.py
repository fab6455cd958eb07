"""Score the bundled weights and SGBM by the zero-shot protocol, for their cards and the documentation.

    python scripts/zero_shot_scores.py FOLDER

FOLDER is that of `aanet evaluate zero-shot`.  If it lacks Middlebury, scikit-image's Motorcycle, which is one
of the 15 scenes, stands for it at Q.  The scores are written to
`src/aanet/models/weights/bundled/zero-shot.json`.  Afterwards, `scripts/readme_tables.py` updates the pages.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from aanet.data.motorcycle import motorcycle
from aanet.evaluation.zero_shot.benchmarks import BENCHMARKS
from aanet.evaluation.zero_shot.bundled import ALONE, FILE, Standing
from aanet.io.atomic import atomic_path
from aanet.io.disparity import encode_disparity
from aanet.io.images import write_image
from aanet.models.weights import files

HANDLINGS = {"": (), ALONE: ("--scale", "1", "--postprocess", "none")}


def main() -> None:
    """Run the command as weights recommend and with the networks alone, and write the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder of the benchmarks")
    folder = parser.parse_args().folder
    if not folder.is_dir():  # would replace all scores by those of the sample pair
        parser.error(f"there is no folder {folder}")
    rows: list[Standing] = []
    with tempfile.TemporaryDirectory() as temporary:
        root = collect(folder, Path(temporary))
        for handling, options in HANDLINGS.items():
            models = [*files.bundled_names(), *([] if handling else ["sgbm"])]
            rows += standings(evaluate(root, models, options), handling)
    with atomic_path(files.BUNDLED / FILE) as path:
        path.write_text(json.dumps([row.as_dict() for row in rows], indent=1) + "\n", encoding="utf-8")


def collect(folder: Path, root: Path) -> Path:
    """Link the benchmarks into another folder, and add the sample pair if there is no Middlebury."""
    for dataset in {each.dataset for each in BENCHMARKS if (folder / each.folder).is_dir()}:
        (root / dataset).symlink_to((folder / dataset).resolve())
    scene = root / "middlebury/trainingQ/Motorcycle"
    if not (root / "middlebury").exists():
        pair = motorcycle()
        assert pair.disparity is not None
        assert pair.valid is not None
        write_image(scene / "im0.png", pair.left)
        write_image(scene / "im1.png", pair.right)
        truth = np.where(pair.valid, pair.disparity, np.float32(np.nan))
        (scene / "disp0GT.pfm").write_bytes(encode_disparity(truth, ".pfm", "Motorcycle"))
    return root


def evaluate(root: Path, models: list[str], options: tuple[str, ...]) -> dict[str, Any]:
    """Run the command and return its result."""
    command = [sys.executable, "-m", "aanet", "evaluate", "zero-shot", str(root), "--json", *options]
    command += ["--precision=float32"]  # auto would take bf16 on some processors
    command += [f"--model={model}" for model in models]
    result = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    facts: dict[str, Any] = json.loads(result.stdout)
    return facts


def standings(facts: dict[str, Any], handling: str) -> list[Standing]:
    """The rows of a result: scores that are defined, rounded as they are printed elsewhere."""
    pairs = {each["name"]: each["pairs"] for each in facts["benchmarks"] if each["pairs"]}
    (weights, *_) = (
        {row["model"]: row["origin"]["weights"] for row in rows} for rows in facts["results"].values()
    )
    rows = []
    for model, scores in facts["scores"].items():
        known = {
            name: {metric: round(value, 2) for metric, value in values.items() if value is not None}
            for name, values in scores.items()
        }
        rows.append(Standing(model, known, pairs, weights[model], handling))
    return rows


if __name__ == "__main__":
    main()
