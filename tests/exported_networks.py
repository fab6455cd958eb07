"""Networks to export, and what came of it, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from aanet.export.exporting import Report
from aanet.matcher import StereoMatcher
from aanet.models.network import StereoNetwork
from small_networks import build_small, randomize_weights


class Exported(NamedTuple):
    network: StereoNetwork
    report: Report
    matcher: StereoMatcher

    @property
    def path(self) -> Path:
        return self.report.path


def lively(name: str) -> StereoNetwork:
    """A small network whose sampling points move."""
    network = build_small(name)
    randomize_weights(network)
    return network.eval()
