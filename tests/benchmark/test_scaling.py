from __future__ import annotations

from pathlib import Path

import cv2
import pytest

from aanet.benchmark import presets, scaling
from aanet.benchmark.scaling import Point, exponent, markdown, measure_scaling, plot_scaling
from aanet.errors import AanetError
from aanet.models.complexity import size_rule


def test_exponent_of_a_power_law_is_found() -> None:
    points = [
        Point(96, side, side, 3 * (side * side / 1e6) ** 1.3, 10 * side * side) for side in (100, 300, 900)
    ]
    assert exponent(points, lambda p: p.seconds) == pytest.approx(1.3)
    assert exponent(points, lambda p: p.gigabytes) == pytest.approx(1.0)


def test_sizes_go_up_to_what_the_network_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "peak_memory", lambda *arguments: 1000 + arguments[2])
    points = measure_scaling("stereonet_aa", "torch", 1, ((30, 45), (64, 64)), (16, 32))
    assert [(p.height, p.width, p.max_disparity) for p in points] == [
        (32, 48, 16),
        (32, 48, 32),
        (64, 64, 16),
        (64, 64, 32),
    ]
    assert [p.peak_memory for p in points[:2]] == [1016, 1032]
    assert all(p.seconds > 0 for p in points)


def test_plot_and_table(tmp_path: Path) -> None:
    points = [Point(limit, side, side, side * limit, side) for limit in (96, 192) for side in (100, 200)]
    plot_scaling(points, "a title", tmp_path / "s.png")
    assert cv2.imread(str(tmp_path / "s.png")).std() > 5
    assert "| 100×100 | 96 | 9600.00 | 0.00 GB |" in markdown(points)


@pytest.mark.parametrize(("free_gb", "size"), [(1000, (576, 960)), (20, (480, 768)), (10, (288, 480))])
def test_the_paper_preset_takes_the_largest_size_that_fits(
    free_gb: float, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # 40 kB for a pixel: 22 GB, 15 GB, 10 GB and 5.5 GB at the four sizes.
    monkeypatch.setattr(presets, "peak_memory", lambda _, probe: 40_000 * probe[0] * probe[1])
    monkeypatch.setattr(presets, "available_memory", lambda: free_gb * 1e9)
    assert presets.largest_common_size() == size


def test_too_little_memory_for_the_paper_preset_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presets, "peak_memory", lambda _, probe: 40_000 * probe[0] * probe[1])
    monkeypatch.setattr(presets, "available_memory", lambda: 1e9)
    with pytest.raises(AanetError, match=r"gcnet needs 5\.1 GB at 288×480"):
        presets.largest_common_size()


def test_every_network_takes_every_size_of_the_paper_preset() -> None:
    for name in presets.paper_networks():
        rule = size_rule(name)
        for size in presets.PAPER_SIZES:
            rule.check(*size, name)
