"""A network and the file that it was exported to."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from aanet.export.exporting import Report
from aanet.matcher import StereoMatcher
from aanet.models.network import StereoNetwork


class Exported(NamedTuple):
    network: StereoNetwork
    report: Report
    matcher: StereoMatcher

    @property
    def path(self) -> Path:
        return self.report.path
