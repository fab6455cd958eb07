"""Where bf16 does not work: every command computes in float32 or says so in a sentence, and none dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aanet.cli import doctor
from aanet.cli import main as entry
from aanet.engines import bf16_support
from aanet.engines.bf16_support import SETTING, VARIABLE, Bf16Support
from aanet.io.images import write_image
from aanet.models.weights import checkpoint
from helpers.matching_network import matching_network, plane

BROKEN = Bf16Support(False, f"a short probe ended with SIGILL, and with {SETTING} it does not work either")
# A machine that announces AMX, on which the probe dies in any case or only with AMX.
COMMAND = """
import sys
from aanet.engines import bf16_support
from aanet.engines.processor import Processor
code = "import os, resource, signal; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\\n"
code += "if {condition}: os.kill(os.getpid(), signal.SIGILL)\\n"
code += "print('{{\\"error\\": 0, \\"seconds\\": {{\\"float32\\": 1, \\"bf16\\": 2}}}}')"
bf16_support.probe_command = lambda _: [sys.executable, "-I", "-S", "-c", code]
bf16_support.this_processor = lambda: Processor("Simulated", frozenset({{"amx_bf16", "amx_tile"}}))
from aanet.cli.main import main
main()
"""
DIES, DIES_WITH_AMX = (COMMAND.format(condition=each) for each in ("True", f"'{VARIABLE}' not in os.environ"))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    paths = (tmp_path / "left.png", tmp_path / "right.png")
    for path, image in zip(paths, plane(64, 128, 12), strict=True):
        write_image(path, image)
    return str(paths[0]), str(paths[1])


def run(command: str, *arguments: object, cache: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "AANET_CACHE": str(cache)}
    environment.pop(VARIABLE, None)
    words = [sys.executable, "-c", command, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.parametrize(("engine", "title"), [("openvino", "OpenVINO"), ("torch", "PyTorch")])
def test_bf16_by_name_is_one_sentence_and_exit_code_2(
    pair: tuple[str, str], tmp_path: Path, engine: str, title: str
) -> None:
    wish = ("--model", "stereonet_aa", "--engine", engine, "--precision", "bf16", "-o", tmp_path / "out")
    done = run(DIES, "predict", *pair, *wish, cache=tmp_path / "cache")
    assert done.returncode == 2
    assert done.stderr.startswith(f"aanet: bf16 cannot be used with {title} here: ")
    assert f"SIGILL, and with {SETTING} it does not work either" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.parametrize(
    ("engine", "precision"), [("openvino", "auto"), ("openvino", "bf16"), ("torch", "bf16")]
)
def test_with_broken_amx_the_default_is_float32_and_bf16_is_had_by_name(
    pair: tuple[str, str], tmp_path: Path, request: pytest.FixtureRequest, engine: str, precision: str
) -> None:
    if precision == "bf16":
        request.getfixturevalue(f"{engine}_bf16")
    network, cache = tmp_path / "network.safetensors", tmp_path / "cache"
    checkpoint.save(matching_network(24), network)
    wish = ("--model", network, "--engine", engine, "--precision", precision, "-o", tmp_path / "out")
    # bf16 would be refused if the library had been loaded before the guard was asked.
    done = run(DIES_WITH_AMX, "predict", *pair, *wish, "--json", cache=cache)
    assert (done.returncode, done.stderr) == (0, "")
    used = "float32" if precision == "auto" else "bf16"  # which is slower here
    assert f", {used}, cpu" in json.loads(done.stdout)["engine"]
    (record,) = (cache / "bf16").iterdir()
    assert json.loads(record.read_text())["support"]["without_amx"]


@pytest.mark.slow
def test_a_recipe_in_bf16_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(bf16_support._results, "torch", BROKEN)
    monkeypatch.chdir(tmp_path)
    arguments = [
        "train",
        "synthetic-cpu",
        "--set",
        "run.precision=bf16-mixed",
        "--set",
        "run.accelerator=cpu",
    ]
    monkeypatch.setattr(sys, "argv", ["aanet", *arguments])
    with pytest.raises(SystemExit) as stop:
        entry.main()
    assert stop.value.code == 2
    sentence = capsys.readouterr().err.splitlines()[-1]
    assert "bf16 cannot be used with PyTorch here: a short probe ended with SIGILL" in sentence
    assert SETTING in sentence
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("engine", ["openvino-bf16", "torch-bf16"])
def test_a_benchmark_of_bf16_is_refused(
    engine: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(bf16_support._results, engine.removesuffix("-bf16"), BROKEN)
    monkeypatch.setattr("aanet.engines.openvino.conversion.to_openvino", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["aanet", "benchmark", "stereonet_aa", "--engines", engine, "--json"])
    with pytest.raises(SystemExit) as stop:
        entry.main()
    assert stop.value.code == 2
    assert SETTING in capsys.readouterr().err


def test_the_doctor_says_it_in_plain_words(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "openvino": BROKEN,
        "torch": Bf16Support(True, "it works", float32_seconds=2.0, bf16_seconds=1.0),
    }
    asked = []

    def support(library: str, fresh: bool) -> Bf16Support:
        asked.append((library, fresh))
        return answers[library]

    monkeypatch.setattr(bf16_support, "bf16_support", support)
    monkeypatch.setattr(doctor, "_self_test", list)
    result = CliRunner().invoke(entry.app, ["doctor", "--json"])
    found = {each["what"]: each["found"] for each in json.loads(result.stdout)["Engines"]}
    assert found["bf16 with openvino"] == f"{BROKEN.reason}; float32 by default"
    assert found["bf16 with torch"] == "it works; float32 by default"
    assert asked == [("openvino", True), ("torch", True)]  # measured again
    answers["openvino"] = answers["torch"]
    result = CliRunner().invoke(entry.app, ["doctor", "--json"])
    assert "it works; used by default where it is faster and accurate" in result.stdout
