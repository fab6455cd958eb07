"""The literal tables of `aanet.evaluation.paper` are the paper's own."""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass
from pathlib import Path

import pytest

from aanet.evaluation import paper

NETWORKS = {
    "aanet",
    "aanet_plus",
    "stereonet_aa",
    "gcnet_aa",
    "psmnet_aa",
    "ganet_aa",
    "stereonet",
    "gcnet",
    "psmnet",
    "ganet",
}
ABLATIONS = {"aanet_no_isa", "aanet_no_csa", "aanet_no_isa_csa"}


@dataclass(frozen=True)
class Printed:
    """A table of the LaTeX source: its number in the paper and its cells."""

    number: int
    rows: list[list[str]]


@pytest.fixture(scope="module")
def printed(paper_source: Path) -> dict[str, Printed]:
    source = paper_source.read_text()
    tables = re.findall(r"\\begin\{table\*?\}(.*?)\\end\{table\*?\}", source, flags=re.DOTALL)
    return {_label(table): Printed(number, _rows(table)) for number, table in enumerate(tables, start=1)}


def _label(table: str) -> str:
    found = re.search(r"\\label\{tab:(\w+)\}", table)
    assert found
    return found[1]


def _rows(table: str) -> list[list[str]]:
    body = table.split(r"\midrule", maxsplit=1)[1].split(r"\bottomrule")[0]
    head = table.split(r"\midrule", maxsplit=1)[0].split(r"\toprule")[1]
    lines = (head + body).replace(r"\&", "and").split(r"\\")
    return [[_plain(cell) for cell in line.split("&")] for line in lines]


def _plain(cell: str) -> str:
    cell = cell.replace(r"\midrule", "").replace("$", "").replace("^", "")
    cell = re.sub(r"\\cite\{\w+\}|\\bf|[{}]", "", cell)
    return re.sub(r"(?<=\d)[MG]$", "", cell.strip())


def _numbers(cells: list[str]) -> list[float | None]:
    return [None if cell == "-" else float(cell) for cell in cells]


def _method_rows(table: Printed, columns: int) -> dict[str, list[float | None]]:
    found = {}
    for row in table.rows:
        try:
            values = _numbers(row[1:])
        except ValueError:  # a heading
            continue
        if len(values) == columns:
            found[row[0]] = values
    return found


def test_comparison_with_3d_convolutions_is_table_2(printed: dict[str, Printed]) -> None:
    assert printed["compare_3d"].number == 2
    ours = {row.method: list(astuple(row)[1:]) for row in paper.COMPARISON_3D.values()}
    assert ours == _method_rows(printed["compare_3d"], columns=9)


def test_kitti_benchmark_is_table_4(printed: dict[str, Printed]) -> None:
    assert printed["kitti"].number == 4
    ours = {row.method: list(astuple(row)[1:]) for row in paper.KITTI.values()}
    assert ours == _method_rows(printed["kitti"], columns=5)


def test_ablation_is_table_1(printed: dict[str, Printed]) -> None:
    assert printed["ablation"].number == 1
    ours = {row.method.replace("&", "and"): list(astuple(row)[1:]) for row in paper.ABLATION.values()}
    assert ours == _method_rows(printed["ablation"], columns=4)


def test_scene_flow_results_are_table_3(printed: dict[str, Printed]) -> None:
    table = printed["sceneflow"]
    assert table.number == 3
    cells = {row[0]: row[1:] for row in table.rows}
    ours = list(paper.SCENE_FLOW.values())
    assert [row.method for row in ours] == cells["Method"]
    assert [row.epe for row in ours] == _numbers(cells["EPE"])
    assert [row.time_s for row in ours] == _numbers(cells["Time (s)"])


def test_speedups_of_the_abstract_follow_from_table_2() -> None:
    def ratio(name: str) -> float:
        return paper.COMPARISON_3D[name].time_ms / paper.COMPARISON_3D[f"{name}_aa"].time_ms

    assert (round(ratio("gcnet")), round(ratio("psmnet"))) == (41, 4)
    assert int(ratio("ganet")) == 38  # 38.8, which the paper states as 38


def test_the_networks_that_the_table_leaves_out_have_the_sizes_of_the_text() -> None:
    assert {*paper.SIZE, *paper.COMPARISON_3D} == NETWORKS
    assert round(paper.SIZE["aanet"].parameters_m, 1) == 3.9
    assert round(paper.SIZE["aanet_plus"].parameters_m, 1) == 8.4


def test_every_network_has_a_scene_flow_result() -> None:
    for name in NETWORKS | ABLATIONS:
        row = paper.published("sceneflow", name)
        assert row is not None, name
        assert row.metrics["epe"] > 0.5


def test_the_tag_of_the_weights_does_not_hide_the_row() -> None:
    tagged = paper.published("kitti2015", "aanet:kitti15")
    assert tagged is not None
    assert (tagged.table, tagged.metrics) == (1, {"epe": 0.68, "d1_all": 2.29})


def test_methods_without_a_published_result_have_no_row() -> None:
    assert paper.published("kitti2012", "sgbm") is None
    assert paper.published("kitti2012", "madnet") is None
    assert paper.published("middlebury", "aanet") is None


def test_kitti_2012_row_is_the_test_server() -> None:
    row = paper.published("kitti2012", "aanet_plus")
    assert row is not None
    assert (row.table, row.metrics) == (4, {"out_noc": 1.55, "out_all": 2.04})
