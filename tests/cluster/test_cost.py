from __future__ import annotations

import re
from pathlib import Path

import pytest

from aanet.cluster.cost import Measured, Site, cost, rows

MEASURED = Measured(1.0, 2e6, 1e6, 200, 50e-6)


def test_the_bottleneck_moves_from_computing_to_the_storage() -> None:
    costs = [cost(MEASURED, 1_000_000, hosts) for hosts in (1, 10, 100, 1000)]
    assert costs[0].computing == pytest.approx(1e6 / 8 / 3600)
    assert costs[1].computing == pytest.approx(costs[0].computing / 10)
    assert costs[0].storage == costs[3].storage == pytest.approx(3.0002e12 / 1.25e9 / 3600)
    assert costs[0].driver == pytest.approx(50 / 3600)
    assert [each.bottleneck for each in costs] == ["computing", "computing", "storage", "storage"]
    assert costs[2].hours == costs[2].storage
    unlimited = Site(storage=1e15)
    assert cost(MEASURED, 1_000_000, 100, unlimited).bottleneck == "computing"
    assert cost(MEASURED, 1_000_000, 100_000, unlimited).bottleneck == "driver"
    assert len(rows(costs)[0]) == 8


def test_the_page_computes_with_the_numbers_that_it_states() -> None:
    page = (Path(__file__).parents[2] / "docs/cluster.md").read_text(encoding="utf-8")
    given = re.search(r"Measured\(([^)]*)\)", page)
    assert given is not None
    measured = Measured(*map(float, given[1].split(",")))
    for cells in rows([cost(measured, 1_000_000, hosts) for hosts in (1, 10, 100)]):
        assert f"| {' | '.join(cells)} |" in page
