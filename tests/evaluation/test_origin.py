"""The origin of a result names what is needed to compute it again."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from aanet.engines.foreign.spec import ForeignSpec
from aanet.errors import ReadError
from aanet.evaluation.origin import MatcherOrigin, digest_of, thread_count, versions_of
from aanet.inference.options import MatchOptions
from aanet.models.weights import files
from helpers.fake_engine import FakeEngine


def test_the_digest_is_that_of_the_file_and_of_the_weights_beside_it(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(b"graph")
    (tmp_path / "a.bin").write_bytes(b"weights")
    (tmp_path / "a.onnx").write_bytes(b"graph")
    assert digest_of(str(tmp_path / "a.xml")) == f"sha256:{sha256(b'graphweights').hexdigest()}"
    assert digest_of(str(tmp_path / "a.onnx")) == f"sha256:{sha256(b'graph').hexdigest()}"
    bundled = files.bundled_file(files.DEFAULT).read_bytes()
    assert digest_of(files.DEFAULT) == f"sha256:{sha256(bundled).hexdigest()}"
    assert digest_of("sgbm") is None
    with pytest.raises(ReadError, match="does not exist"):
        digest_of(str(tmp_path / "b.onnx"))


def test_versions_are_those_of_the_libraries_that_were_used() -> None:
    assert list(versions_of("torch")) == ["aanet", "torch", "opencv"]
    assert list(versions_of("openvino", opencv=False)) == ["aanet", "openvino"]
    assert list(versions_of("opencv")) == ["aanet", "opencv"]


def test_threads_are_the_requested_ones_or_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
    assert (thread_count(5), thread_count(None)) == (5, 3)
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert thread_count(None) >= 1


def test_how_a_foreign_network_is_fed_is_said() -> None:
    spec = {
        "name": "theirs",
        "license": "MIT",
        "input": [{"name": "x", "content": "left+right"}],
        "image": {"layout": "NHWC", "color": "gray", "range": [0.0, 255.0]},
        "size": {"multiple": 64},
        "output": {"name": "y", "sign": "negative", "resolution": 0.25},
    }
    engine = FakeEngine(name="theirs")
    engine.foreign = ForeignSpec.from_table(spec, "a test")  # type: ignore[attr-defined]
    origin = MatcherOrigin.of(engine.matcher, "sgbm", MatchOptions())
    words = dict(origin.lines("theirs", []))["theirs, spec"]
    assert words.startswith("gray images in 0 … 255, NHWC, negative disparities in units of a pixel, times 1")
    assert words.endswith("at 0.25 of the size, license MIT")
    facts = json.loads(json.dumps(origin.as_dict()))
    assert facts["network_spec"]["image"]["color"] == "gray"
