"""Converted networks on disk: found again, whole or absent, also with several processes."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import openvino
import platformdirs
import pytest

from aanet.engines.openvino import cache
from aanet.engines.openvino.engine import OpenVINOEngine
from aanet.inference.hints import InferenceHints
from aanet.inference.size_rule import SizeRule
from aanet.inference.spec import NetworkSpec
from aanet.models.weights import checkpoint
from helpers.small_networks import build_small

HINTS = InferenceHints(upscale_to=300, sharpen_edges=True, fill_border=True)
SPEC = NetworkSpec("stereonet_aa", 24, 500, True, 4, SizeRule(4, 4), HINTS)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("AANET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def write(path: Path) -> NetworkSpec:
    path.write_text("model")
    path.with_suffix(".bin").write_bytes(b"weights")
    return SPEC


def test_what_is_stored_is_found_again(folder):
    assert cache.load("key") is None
    stored = cache.store("key", write)
    assert stored == cache.load("key") == (folder / "openvino" / "key" / "model.xml", SPEC)
    assert [path.name for path in (folder / "openvino").iterdir()] == ["key"]  # no temporary folder is left


def test_what_was_not_used_for_longest_makes_room(folder, monkeypatch):
    monkeypatch.setattr(cache, "KEPT", 3)
    for age, key in enumerate(("third", "second", "first")):
        cache.store(key, write)
        os.utime(folder / "openvino" / key / "spec.json", (1000 - age, 1000 - age))
    assert cache.load("first") is not None  # used again
    cache.store("new", write)
    assert {path.name for path in (folder / "openvino").iterdir()} == {"first", "third", "new"}


DAMAGES = {
    "truncated": lambda content: content[:-3],
    "bit flip": lambda content: bytes([content[0] ^ 1]) + content[1:],
    "replaced": lambda content: bytes(len(content)),
    "nested": lambda _: b"[" * 100_000,
    "empty": lambda _: b"",
    "other digits": lambda content: content.replace(b"24", b"25").replace(b"o", b"u"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["model.bin", "model.xml", "spec.json"])
def test_a_damaged_entry_counts_as_absent_and_is_replaced(folder, caplog, name, damage):
    cache.store("key", write)
    file = folder / "openvino" / "key" / name
    changed = DAMAGES[damage](file.read_bytes())
    if changed == file.read_bytes():
        pytest.skip("this leaves the file as it is")
    file.write_bytes(changed)
    assert cache.load("key") is None
    assert "is damaged; it is converted again" in caplog.text
    assert cache.store("key", write) is not None
    assert (folder / "openvino" / "key" / "model.bin").read_bytes() == b"weights"


def test_the_second_of_two_writers_takes_the_first_ones_result(folder):
    def meanwhile(path: Path) -> NetworkSpec:
        cache.store("key", write)  # another process is done first
        path.write_text("late")
        path.with_suffix(".bin").write_bytes(b"late")
        return SPEC

    assert cache.store("key", meanwhile) is not None
    assert (folder / "openvino" / "key" / "model.bin").read_bytes() == b"weights"
    assert len(list((folder / "openvino").iterdir())) == 1


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path, monkeypatch, caplog, converted):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("AANET_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr("aanet.engines.openvino.conversion.to_openvino", lambda _network: converted.model)
    path = tmp_path / "w.safetensors"
    checkpoint.save(converted.network, path)
    with caplog.at_level(logging.WARNING):
        engine = OpenVINOEngine.from_weights(path)
    assert "The converted network is not kept" in caplog.text
    image = np.zeros((1, 3, 16, 16), np.float32)
    assert engine(image, image)[0].shape == (1, 16, 16)


def test_what_openvino_cannot_read_is_converted_again(tmp_path, monkeypatch, caplog, converted):
    monkeypatch.setattr("aanet.engines.openvino.conversion.to_openvino", lambda _network: converted.model)
    path = tmp_path / "w.safetensors"
    checkpoint.save(converted.network, path)
    cache.store(cache.key_of(path, None, f"openvino {openvino.__version__}"), write)
    engine = OpenVINOEngine.from_weights(path, precision="float32")
    assert "cannot read the converted network" in caplog.text
    caplog.clear()
    OpenVINOEngine.from_weights(path, precision="float32")
    assert not caplog.text  # it was replaced
    image = np.zeros((1, 3, 16, 16), np.float32)
    assert engine(image, image)[0].shape == (1, 16, 16)


def test_an_interrupted_conversion_leaves_nothing(folder):
    def interrupted(path: Path) -> NetworkSpec:
        path.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.store("key", interrupted)
    assert list((folder / "openvino").iterdir()) == []


def test_the_key_holds_all_that_decides_the_result(tmp_path):
    one, other, moved = (tmp_path / name for name in ("one", "other", "moved"))
    one.write_bytes(b"a")
    other.write_bytes(b"b")
    moved.write_bytes(b"a")
    key = cache.key_of(one, None, "openvino 1")
    assert cache.key_of(moved, None, "openvino 1") == key  # the content counts, not the name
    assert cache.key_of(other, None, "openvino 1") != key
    assert cache.key_of(one, 96, "openvino 1") != key
    assert cache.key_of(one, None, "openvino 2") != key


def test_the_folder_is_the_one_of_the_environment_or_the_systems(monkeypatch):
    monkeypatch.setenv("AANET_CACHE", "~/kept")
    assert cache.cache_folder() == Path.home() / "kept"
    monkeypatch.delenv("AANET_CACHE")
    assert cache.cache_folder() == platformdirs.user_cache_path("aanet", appauthor=False)


def test_weights_are_converted_once(tmp_path, monkeypatch, converted):
    calls = []
    monkeypatch.setattr(
        "aanet.engines.openvino.conversion.to_openvino",
        lambda network: (calls.append(network), converted.model)[1],
    )
    path = tmp_path / "w.safetensors"
    network = build_small("stereonet_aa", 24)
    checkpoint.save(network, path, hints=HINTS)
    # On every processor: nothing is computed in bf16 here.
    monkeypatch.setattr("aanet.engines.openvino.engine.require_bf16", lambda _: None)
    first, half, again = (
        OpenVINOEngine.from_weights(path, precision=precision) for precision in ("float32", "bf16", "float32")
    )
    assert len(calls) == 1  # for every precision
    assert first.spec == half.spec == again.spec == SPEC
    image = np.random.default_rng(0).random((1, 3, 32, 64), np.float32)
    np.testing.assert_array_equal(first(image, image)[0], again(image, image)[0])


@pytest.mark.slow
def test_two_processes_convert_at_once_and_a_third_needs_no_torch(tmp_path, folder):
    """A later process must start fast: torch alone takes longer to load than everything else."""
    path = tmp_path / "w.safetensors"
    checkpoint.save(build_small("stereonet_aa", 24), path)
    script = (
        "import sys, numpy as np\n"
        "from aanet.matcher import StereoMatcher\n"
        "matcher = StereoMatcher(sys.argv[1], engine='openvino')\n"
        "result = matcher(*np.zeros((2, 20, 30, 3), np.uint8))\n"
        "assert result.disparity.shape == (20, 30)\n"
        "print('torch' in sys.modules)"
    )

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True)

    at_once = [start(), start()]
    assert [process.communicate()[0].strip() for process in at_once] == ["True", "True"]
    assert len(list((folder / "openvino").iterdir())) == 1
    assert start().communicate()[0].strip() == "False"
