"""Exporting takes seconds, so the tests share one file of each format that takes every size."""

from __future__ import annotations

import pytest

from aanet.export.exporting import export_network
from aanet.export.torch_export import ProgramEngine
from aanet.matcher import StereoMatcher
from helpers.exported_networks import Exported
from helpers.small_networks import build_small


@pytest.fixture(scope="session", params=[".onnx", ".xml", ".pt2"])
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """A deformable network for every image size, in each format in turn."""
    network = build_small("stereonet_aa", randomize=True)
    path = tmp_path_factory.mktemp("exported") / f"model{request.param}"
    report = export_network(network, path, weights="sha256:0123")
    own = path.suffix == ".pt2"  # not opened by StereoMatcher
    matcher = StereoMatcher.with_engine(ProgramEngine(path)) if own else StereoMatcher(path)
    return Exported(network, report, matcher)
