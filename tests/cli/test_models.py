from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aanet.cli.main import app
from aanet.errors import AanetError
from aanet.inference.hints import InferenceHints
from aanet.models import zoo
from aanet.models.weights import checkpoint, files

run = CliRunner().invoke


@pytest.mark.slow
def test_json_has_every_network_beside_the_paper() -> None:
    result = run(app, ["models", "--json", "--height", "288", "--width", "288"])
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert list(rows) == list(zoo.NETWORKS)
    assert rows["aanet"]["parameters"] == 3_931_676
    assert rows["gcnet"]["published"] == {"parameters_m": 2.85, "macs_g": 1754.10}
    assert rows["aanet_no_isa"]["published"] is None
    assert rows["psmnet"]["minimum_size"] == 256


@pytest.mark.slow
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


def test_a_weight_file_says_what_it_holds(tmp_path: Path) -> None:
    file = tmp_path / "weights.safetensors"
    facts = {
        "trained_on": "kitti2015",
        "recipe_digest": "57f6c456b4dd",
        "scores": {"mine": {"motorcycle": {"epe": 0.968}}},
    }
    hints = InferenceHints(upscale_to=1100, fill_border=True)
    checkpoint.save(zoo.build("stereonet_aa", 48), file, facts, hints)
    shown = run(app, ["models", str(file)]).stdout
    for words in (
        *("StereoNet-AA (stereonet_aa)", "below 48 pixels", "narrower than 1100 pixels"),
        *("fill the left border", "kitti2015", "57f6c456b4dd", "motorcycle", "0.97"),
    ):
        assert words in shown, words
    row = json.loads(run(app, ["models", str(file), "--json"]).stdout)
    assert (row["network"], row["max_disparity"], row["facts"]) == ("stereonet_aa", 48, facts)
    assert row["parameters"] == sum(each.numel() for each in zoo.build("stereonet_aa", 48).parameters())


def test_a_weight_file_that_says_little_is_described_too(tmp_path: Path) -> None:
    checkpoint.save(zoo.build("stereonet_aa", 48), tmp_path / "w.safetensors")
    shown = run(app, ["models", str(tmp_path / "w.safetensors")]).stdout
    assert re.search(r"inference hints\s+none", shown)
    assert re.search(r"trained on\s+not stated", shown)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("aanett", r"no network 'aanett' \(did you mean 'aanet'\?\).* or a weight file"),
        ("missing.safetensors", "neither a file missing.safetensors"),
    ],
)
def test_an_unknown_network_is_one_sentence(name: str, sentence: str) -> None:
    error = run(app, ["models", name]).exception
    assert isinstance(error, AanetError)
    assert re.search(sentence, str(error))
