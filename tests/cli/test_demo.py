from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aanet.cli.main import app
from aanet.io.disparity import read_disparity
from aanet.io.images import read_image
from aanet.io.points import read_ply


@pytest.mark.slow
def test_demo_predicts_the_motorcycle_and_draws_it(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["demo", "-o", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    # What SGBM reached when it was tuned; a worse number means that something broke.
    assert facts["scores"]["sgbm"]["epe"] < 1.3
    assert facts["scores"]["sgbm"]["bad2"] < 7.5
    files = [Path(file) for file in facts["files"]]
    assert all(file.is_file() for file in files)
    assert {"left.png", "right.png", "calib.json"} <= {
        file.name for file in files
    }  # the README goes on with them
    assert read_image(tmp_path / "panel.png").shape[1] > 1400
    (disparity,) = (file for file in files if file.name.endswith("disparity.png"))
    assert read_disparity(disparity).shape == (500, 741)
    (cloud,) = (file for file in files if file.suffix == ".ply")
    points, colors = read_ply(cloud)
    assert len(points) == len(colors) > 100_000
