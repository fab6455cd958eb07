"""The manifest, the list and the opening of a model, without a cluster."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aanet.cluster.manifest import Manifest, read_manifest, schema
from aanet.cluster.prediction import Settings, open_matcher
from aanet.cluster.work_list import open_list
from aanet.errors import InputError, ReadError, WriteError
from aanet.inference.spec import NetworkSpec
from aanet.io.pairs import find_pairs
from helpers.ray_runs import put_pairs

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is in the extra cluster")
JOB = {"list": {"digest": "a", "pairs": 9}, "options": {"scale": "auto"}}


def table(*places: int, error: str | None = None) -> Any:
    rows = [{"place": place, "name": str(place), "warnings": ["w"], "error": error} for place in places]
    return pa.Table.from_pylist(rows, schema())


def begun(output: Path, resume: bool = False) -> Manifest:
    manifest = Manifest(str(output))
    manifest.check(JOB, resume, overwrite=False)
    manifest.begin(JOB, resume)
    return manifest


@pytest.mark.parametrize("place", ["{}", "file://{}", "local://{}"])
def test_rows_are_written_in_parts_and_read_in_order(tmp_path: Path, place: str) -> None:
    if place.startswith("local"):
        pytest.importorskip("fsspec", reason="manifests on object stores need fsspec")
    output: Any = place.format(tmp_path / "out")
    manifest = begun(output)
    manifest.add(table(4, 2))
    assert manifest.parts() == []  # few rows wait
    manifest.flush()
    manifest.add(table(0))
    manifest.flush()
    assert manifest.parts() == ["part-000000.parquet", "part-000001.parquet"]
    assert read_manifest(output).column("place").to_pylist() == [0, 2, 4]
    assert list(manifest.finished(5)) == [1, 0, 1, 0, 1]
    again = begun(output, resume=True)
    again.add(table(1, 2, error="twice"))
    again.flush()
    found = read_manifest(output)
    assert found.column("place").to_pylist() == [0, 1, 2, 4]  # a pair that was done twice counts once
    assert found.column("error").to_pylist() == [None, "twice", "twice", None]
    again.compact()
    assert again.parts() == ["part-000003.parquet"]
    assert read_manifest(output).equals(found)


def test_many_rows_are_many_parts(tmp_path: Path) -> None:
    manifest = begun(tmp_path)
    for first in range(0, 2500, 100):
        manifest.add(table(*range(first, first + 100)))
    manifest.flush()
    assert [len(pa.parquet.read_table(tmp_path / "manifest" / part)) for part in manifest.parts()] == [
        *(1000, 1000, 500)
    ]
    assert len(read_manifest(str(tmp_path))) == 2500


def test_other_work_is_refused(tmp_path: Path) -> None:
    begun(tmp_path)
    manifest = Manifest(str(tmp_path))
    with pytest.raises(WriteError, match="go on with --resume"):
        manifest.check(JOB, resume=False, overwrite=False)
    with pytest.raises(InputError, match="belongs to another list of pairs"):
        manifest.check({**JOB, "list": {"digest": "b", "pairs": 9}}, resume=True, overwrite=False)
    with pytest.raises(InputError, match=r"other options \(scale\)"):
        manifest.check({**JOB, "options": {"scale": "2.0"}}, resume=True, overwrite=False)
    manifest.check({**JOB, "options": {"scale": "2.0"}}, resume=False, overwrite=True)
    for damage in (b"[]", b"not JSON", b"{}", b"[" * 100_000):
        (tmp_path / "manifest/job.json").write_bytes(damage)
        with pytest.raises(ReadError, match="is damaged"):
            manifest.check(JOB, resume=True, overwrite=False)


def test_a_part_that_is_no_manifest_is_one_sentence(tmp_path: Path) -> None:
    begun(tmp_path)
    part = tmp_path / "manifest/part-000000.parquet"
    part.write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(ReadError, match="is damaged; it is not a part of a manifest"):
        read_manifest(str(tmp_path))
    pa.parquet.write_table(pa.table({"other": [1]}), part)
    with pytest.raises(ReadError, match="is damaged; it is not a part of a manifest"):
        Manifest(str(tmp_path)).finished(3)


def test_a_list_has_the_names_of_one_machine(tmp_path: Path) -> None:
    listed = put_pairs(tmp_path, 3)
    lines = ["left,right", "left/0.png,right/0.png", "left/0.png,right/1.png", "left/2.png,right/2.png"]
    (tmp_path / "twice.csv").write_text("\n".join(lines))
    for source in (listed, tmp_path / "twice.csv", tmp_path):
        pairs = list(open_list(str(source)).pairs())
        assert [pair.name for pair in pairs] == [pair.name for pair in find_pairs(source)]
        assert [pair.place for pair in pairs] == [0, 1, 2]
        assert pairs[2].left == str(tmp_path / "left/2.png")
    assert open_list(str(listed)).digest != open_list(str(tmp_path / "twice.csv")).digest


def test_a_network_is_converted_once_per_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import openvino
    from openvino import opset13

    converted = []

    def convert(*_: object) -> tuple[openvino.Model, NetworkSpec]:
        converted.append(threading.get_ident())
        time.sleep(0.2)  # so that the others would begin, too
        images = [opset13.parameter([-1, 3, -1, -1], openvino.Type.f32) for _ in range(2)]
        sums = [opset13.reduce_sum(image, [1]) for image in images]
        return openvino.Model(sums, images, "small"), NetworkSpec("aanet", 48, 500, True)

    monkeypatch.setenv("AANET_CACHE", str(tmp_path))
    monkeypatch.setattr("aanet.engines.openvino.engine._convert", convert)
    weights = tmp_path / "w.safetensors"
    weights.write_bytes(b"weights")
    settings = Settings({"model": str(weights), "engine": "openvino", "precision": "float32"})
    threads = [threading.Thread(target=open_matcher, args=[settings]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(converted) == 1
    assert np.isfinite(open_matcher(settings).spec.max_disparity)
