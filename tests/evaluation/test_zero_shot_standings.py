"""Where the bundled weights stand: one source of the figures for the cards and for the documentation."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from aanet.cli.main import app
from aanet.data.motorcycle import motorcycle
from aanet.evaluation.origin import digest_of
from aanet.evaluation.zero_shot import bundled
from aanet.evaluation.zero_shot.benchmarks import BENCHMARKS, open_present
from aanet.evaluation.zero_shot.bundled import HELD_OUT, Standing, Standings
from aanet.evaluation.zero_shot.published import PUBLISHED, SOURCES
from aanet.evaluation.zero_shot.table import COLUMNS
from aanet.models.weights import files
from helpers import layouts
from helpers.scripts import load_script

PAGE = Path(__file__).parents[2] / "docs" / "evaluating.md"


def test_every_published_score_has_a_column_and_a_source() -> None:
    columns = {(column.benchmark, column.metric) for column in COLUMNS}
    for row in PUBLISHED:
        assert {(name, metric) for name, values in row.scores.items() for metric in values} <= columns
        assert row.sources
        assert set(row.sources) <= SOURCES.keys()


def test_published_rows_are_those_of_the_papers() -> None:
    found = {
        row.method: (
            row.scores.get("middlebury-Q", {}).get("bad2_noc"),
            row.scores.get("middlebury-H", {}).get("bad2_noc"),
            row.scores["kitti2015"]["d1_all"],
        )
        for row in PUBLISHED
    }
    assert found == {
        "PSMNet": (14.2, 25.1, 16.3),
        "GwcNet": (18.1, 34.2, 22.7),
        "GA-Net": (11.2, 20.3, 11.7),
        "DSMNet": (8.1, 13.8, 6.5),
        "HITNet": (None, None, 6.5),
    }


def test_the_documented_table_is_that_of_the_package() -> None:
    script = load_script("readme_tables")
    text = PAGE.read_text(encoding="utf-8")
    tables = script.OTHER_PAGES[PAGE.resolve()]
    assert script.with_tables(text, tables, PAGE.name) == text, "run scripts/readme_tables.py"


def test_weights_were_scored_in_both_ways_and_beside_sgbm() -> None:
    rows = [(row.model, row.handling) for row in bundled.measured()]
    names = {model for model, _ in rows if model != "sgbm"}
    assert files.DEFAULT in names
    assert names <= set(files.bundled_names())
    assert sorted(rows) == sorted(
        [("sgbm", ""), *((name, way) for name in names for way in ("", bundled.ALONE))]
    )


def test_scores_of_other_weights_are_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "aanet.safetensors").write_bytes(b"new weights")
    monkeypatch.setattr(files, "BUNDLED", tmp_path)
    row = Standing("aanet", {"kitti2015": {"d1_all": 9.04}}, {"kitti2015": 13}, digest_of("aanet"))
    assert row.row_name == "aanet"
    earlier = replace(row, weights="sha256:0", handling=bundled.ALONE)
    assert earlier.row_name == "aanet, network alone, earlier weights"
    (tmp_path / bundled.FILE).write_text(json.dumps([row.as_dict(), earlier.as_dict()]))
    monkeypatch.setattr(bundled, "HELD_OUT", ())
    standings = Standings.of(["aanet"])
    assert standings is not None
    columns, rows = standings.table()
    place = 1 + [column.benchmark for column in columns].index("kitti2015")
    shown = [(cells[0], cells[place]) for cells in rows]
    assert shown[:3] == [("pairs", "13/200"), ("aanet", "9.0"), (earlier.row_name, "9.0")]
    assert shown[3] == ("PSMNet [1, 2]", "16.3")
    assert Standings.of(["stereonet"]) is None


def test_the_card_of_weights_says_where_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = dict.fromkeys(("parameters", "total_macs", "conv3d", "deform_convs"), 0)
    described = {"name": "aanet", "title": "AANet", "summary": "", "when": "", "weights": ["aanet"], **counts}
    # Counting the operations of a network is not what is tested here, and takes seconds.
    monkeypatch.setattr("aanet.cli.models._describe", lambda *_: dict(described))
    shown = CliRunner().invoke(app, ["models", "aanet"], env={"COLUMNS": "80"}).stdout
    table = shown[shown.index("Zero-shot generalization") :]
    lines = [line.split() for line in table.splitlines() if line.strip()]
    (unseen,) = (line for line in lines if line[:2] == ["unseen", "pairs"])
    assert "11/200" in unseen
    assert "15/15" in unseen
    held_out = HELD_OUT[0].scores
    expected = [f"{held_out['middlebury-Q'][metric]:.1f}" for metric in ("bad2_noc", "bad2")]
    assert any(set(expected) <= set(line) for line in lines if line[0].startswith("aanet"))
    assert "trained on synthetic scenes of this project" in table
    row = json.loads(CliRunner().invoke(app, ["models", "aanet", "--json"]).stdout)
    assert row["zero_shot"]["held_out"][0]["scores"] == held_out


def test_the_script_scores_what_there_is_and_the_sample_pair(tmp_path: Path) -> None:
    script = load_script("zero_shot_scores")
    layouts.kitti2015(tmp_path / "data/kitti2015")
    layouts.middlebury2006(
        tmp_path / "data/middlebury"
    )  # another layout, which must not be taken for version 3
    root = tmp_path / "root"
    root.mkdir()
    present = open_present(script.collect(tmp_path / "data", root), BENCHMARKS)
    assert [(each.name, len(pairs)) for each, pairs in present.items()] == [
        ("kitti2015", 4),
        ("middlebury-Q", 1),
    ]
    (scene,) = present[BENCHMARKS[2]]
    original = motorcycle()
    np.testing.assert_array_equal(scene.left, original.left)
    np.testing.assert_array_equal(scene.disparity, original.disparity)
    facts = {
        "benchmarks": [{"name": "kitti2015", "pairs": 4}, {"name": "eth3d", "pairs": 0}],
        "scores": {"aanet": {"kitti2015": {"d1_all": 9.0449, "d1_noc": None}}},
        "results": {"kitti2015": [{"model": "aanet", "origin": {"weights": "sha256:1"}}]},
    }
    (row,) = script.standings(facts, "network alone")
    assert row == Standing(
        "aanet", {"kitti2015": {"d1_all": 9.04}}, {"kitti2015": 4}, "sha256:1", "network alone"
    )


def test_a_missing_folder_leaves_the_scores_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = load_script("zero_shot_scores")
    monkeypatch.setattr(files, "BUNDLED", tmp_path)
    monkeypatch.setattr("sys.argv", ["zero_shot_scores.py", str(tmp_path / "missing")])
    monkeypatch.setattr(script, "evaluate", lambda *_: pytest.fail("evaluated without a folder"))
    with pytest.raises(SystemExit) as raised:
        script.main()
    assert raised.value.code == 2
    assert "there is no folder" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
