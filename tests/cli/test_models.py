from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aanet.cli.main import app
from aanet.errors import AanetError
from aanet.models import zoo
from aanet.models.weights import checkpoint, files

run = CliRunner().invoke


def test_json_has_every_network_beside_the_paper() -> None:
    result = run(app, ["models", "--json", "--height", "288", "--width", "288"])
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert list(rows) == list(zoo.NETWORKS)
    assert rows["aanet"]["parameters"] == 3_931_676
    assert rows["gcnet"]["published"] == {"parameters_m": 2.85, "macs_g": 1754.10}
    assert rows["aanet_no_isa"]["published"] is None
    assert rows["psmnet"]["minimum_size"] == 256


def test_table_fits_eighty_columns() -> None:
    result = run(app, ["models", "--height", "288", "--width", "288"])
    table = [line for line in result.stdout.splitlines() if line.startswith((" aanet", " psmnet"))]
    assert len(table) == sum(name.startswith(("aanet", "psmnet")) for name in zoo.NETWORKS)
    assert "…" not in result.stdout


def test_a_size_that_does_not_fit_is_named() -> None:
    result = run(app, ["models", "--height", "100"])
    assert isinstance(result.exception, AanetError)
    assert "aanet needs a height and width that are multiples of 12" in str(result.exception)


@pytest.mark.parametrize("name", ["aanet", "stereonet"])
def test_summary_says_what_a_network_is(name: str) -> None:
    assert len(zoo.card(name).summary) > 20


def test_one_network_is_shown_with_the_card_of_its_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BUNDLED", tmp_path)
    without = run(app, ["models", "stereonet_aa"])
    assert "No weights of it come with the package" in without.stdout
    checkpoint.save(zoo.build("stereonet_aa"), tmp_path / "stereonet_aa.safetensors", {"hours": 2.5})
    (tmp_path / "stereonet_aa.md").write_text("# A card\n\nTrained on scenes.\n")
    shown = run(app, ["models", "stereonet_aa"]).stdout
    assert "0.53 M parameters" in shown
    assert "Trained on scenes." in shown
    row = json.loads(run(app, ["models", "stereonet_aa", "--json"]).stdout)
    assert row["facts"] == {"stereonet_aa": {"hours": 2.5}}


def test_an_unknown_network_is_one_sentence() -> None:
    error = run(app, ["models", "aanett"]).exception
    assert isinstance(error, AanetError)
    assert "There is no network 'aanett'" in str(error)
