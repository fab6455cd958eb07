"""`aanet doctor` reports the installation, and notices when something computes wrong results."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib import metadata

import numpy as np
import pytest
from typer.testing import CliRunner

from aanet.cli import doctor
from aanet.cli.main import app
from aanet.engines.table import ENGINES


@pytest.fixture
def quick(monkeypatch) -> None:
    """Without the conversion, which takes seconds."""
    monkeypatch.setattr(doctor, "_parity_tests", lambda: [doctor.Finding("openvino and torch", "–", ok=True)])


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_everything_is_told_as_json(tmp_path, monkeypatch):
    monkeypatch.setenv("AANET_CACHE", str(tmp_path))
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert list(report) == ["Versions", "Extras", "Hardware", "Engines", "Files", "Self-test"]
    found = {finding["what"]: finding["found"] for findings in report.values() for finding in findings}
    assert found["numpy"] == np.__version__
    assert {"lightning", "fastapi", "onnxruntime"} <= set(re.findall(r"\w+", " ".join(found.values())))
    assert set(ENGINES) <= {finding["what"] for finding in report["Engines"]}
    assert "default" in found["openvino"]
    assert found["cache"].startswith(f"{tmp_path}: 0 converted networks")
    assert "error 0.0" in found["sgbm on a plane"]


def test_extras_are_listed_with_what_is_missing(monkeypatch):
    requirements = [
        "numpy>=1",
        "lightning>=2.5; extra == 'train'",
        "absent-package; extra == 'train'",
        "tomli; python_version < '3.11' and extra == 'train'",
        "also-absent; extra == 'web'",
        "pytest; extra == 'dev'",
    ]
    monkeypatch.setattr(doctor.metadata, "requires", lambda _: requirements)
    train, web = doctor._extras()
    assert train.found == (
        f"lightning {metadata.version('lightning')}; without absent-package: pip install 'aanet[train]'"
    )
    assert web.found == "without also-absent: pip install 'aanet[web]'"
    assert [finding.what for finding in doctor._versions()] == ["python", "aanet", "numpy"]


def test_an_engine_that_is_not_installed_is_listed(monkeypatch):
    monkeypatch.setitem(ENGINES, "onnxruntime", replace(ENGINES["onnxruntime"], package="absent_package"))
    (finding,) = (finding for finding in doctor._engines() if finding.what == "onnxruntime")
    assert "pip install 'aanet[export]'" in finding.found


@pytest.mark.parametrize(
    ("cuda", "gpus", "noticed"), [("13.0", 0, True), ("13.0", 1, False), (None, 0, False)]
)
def test_cuda_without_a_gpu_is_noticed_with_the_command_that_replaces_it(monkeypatch, cuda, gpus, noticed):
    import torch

    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: f"GPU {index}")
    monkeypatch.setattr(torch, "__version__", "2.13.0+cu130")
    found = {finding.what: finding for finding in doctor._hardware()}
    assert ("torch build" in found) is noticed
    if noticed:
        assert found["torch build"].found == (
            "for CUDA 13.0, but it finds no GPU here; the smaller build for the CPU: pip install "
            "--force-reinstall --no-deps torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
        )
        assert found["torch build"].ok is None  # it works; it is only large


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_everything_is_told_as_tables():
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0
    for word in ("Versions", "openvino", "processor", "free memory", "cache", "sgbm on a plane", "✓"):
        assert word in result.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_a_matcher_that_is_wrong_is_noticed(monkeypatch):
    from aanet.engines.semi_global import SemiGlobalMatcher

    right = SemiGlobalMatcher.__call__

    def off_by_one(self, left, right_image):
        disparity, confidence, consistent = right(self, left, right_image)
        return disparity + 1, confidence, consistent

    monkeypatch.setattr(SemiGlobalMatcher, "__call__", off_by_one)
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["Self-test"][0]["ok"] is False


def test_an_engine_that_is_wrong_is_noticed(monkeypatch):
    from aanet.engines.openvino.engine import OpenVINOEngine
    from aanet.engines.torch import TorchEngine

    class Wrong(TorchEngine):
        def __call__(self, left, right):
            disparity, confidence = super().__call__(left, right)
            return disparity + 0.01, confidence

    for engine, expected in ((TorchEngine, True), (Wrong, False)):
        monkeypatch.setattr(
            OpenVINOEngine, "from_network", lambda network, *_, engine=engine: engine(network, "cpu")
        )
        (finding,) = doctor._parity_tests()
        assert finding.ok is expected
