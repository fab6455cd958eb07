from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from aanet.cli.main import app
from aanet.errors import AanetError
from aanet.models import zoo

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
    assert len(table) == 7
    assert "…" not in result.stdout


def test_a_size_that_does_not_fit_is_named() -> None:
    result = run(app, ["models", "--height", "100"])
    assert isinstance(result.exception, AanetError)
    assert "aanet needs a height and width that are multiples of 12" in str(result.exception)


@pytest.mark.parametrize("name", ["aanet", "stereonet"])
def test_summary_says_what_a_network_is(name: str) -> None:
    assert len(zoo.card(name).summary) > 20
