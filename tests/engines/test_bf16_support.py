"""Whether bf16 works is found out by a child process, so that a crash never reaches the user."""

from __future__ import annotations

import json
import logging
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aanet.engines import bf16_support
from aanet.engines.bf16_support import SETTING, VARIABLE, WITHOUT_AMX, may_be_default, refusal, require_bf16
from aanet.engines.openvino import engine
from aanet.engines.openvino.engine import OpenVINOEngine
from aanet.engines.processor import Processor, parse_cpuinfo, this_processor
from aanet.engines.torch import TorchEngine
from aanet.errors import AanetError, UnsupportedError

AMX = Processor("Simulated", frozenset({"avx512_bf16", "amx_bf16", "amx_tile"}))
AVX512 = Processor("Simulated", frozenset({"avx512_bf16"}))
AVX2 = Processor("Simulated", frozenset({"avx2"}))

GOOD = 'print(\'{"error": 0.01, "seconds": {"float32": 2, "bf16": 1}}\')'
SLOW = 'print(\'{"error": 0.01, "seconds": {"float32": 1, "bf16": 0.96}}\')'
WRONG = 'print(\'{"error": 0.3, "seconds": {"float32": 2, "bf16": 1}}\')'
NOT_A_NUMBER = 'print(\'{"error": NaN, "seconds": {"float32": 2, "bf16": 1}}\')'
ABSENT = "print('null')"
DIES = (
    "import os, resource, signal; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.kill(os.getpid(), {})"
)
SIGILL, SIGSEGV, SIGKILL = (DIES.format(f"signal.{name}") for name in ("SIGILL", "SIGSEGV", "SIGKILL"))
GOOD_WITHOUT_AMX = (
    f"import os\nif os.environ.get('{VARIABLE}') == '{WITHOUT_AMX}': {GOOD}\nelse: raise SystemExit(132)"
)

Simulate = Callable[..., list[object]]


@pytest.fixture
def simulate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Simulate:
    """Let the probe run this code on that processor, in a process that has asked nothing yet.

    What is returned grows with every child that is started.
    """

    def start(code: str, processor: Processor = AVX512, loaded: tuple[str, ...] = ()) -> list[object]:
        children: list[object] = []
        run = subprocess.run

        def count(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
            children.append(command)
            return run(command, **options)

        command = [sys.executable, "-I", "-S", "-c", code]
        monkeypatch.setattr(bf16_support.subprocess, "run", count)
        monkeypatch.setattr(bf16_support, "probe_command", lambda _: command)
        monkeypatch.setattr(bf16_support, "this_processor", lambda: processor)
        monkeypatch.setattr(bf16_support, "_is_loaded", lambda library: library in loaded)
        monkeypatch.setattr(bf16_support, "_results", {})
        monkeypatch.setattr(bf16_support, "_loaded_with_amx", set())
        return children

    monkeypatch.setenv("AANET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(VARIABLE, "")  # so that it is put back, also if the code under test sets it
    monkeypatch.delenv(VARIABLE)
    return start


def restart() -> None:
    """Forget what this process knows, as another one would."""
    bf16_support._results.clear()


posix = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        pytest.param(SIGILL, "ended with SIGILL", marks=posix, id="SIGILL"),
        pytest.param(SIGSEGV, "ended with SIGSEGV", marks=posix, id="SIGSEGV"),
        pytest.param(
            "raise RuntimeError('could not create a primitive')", "ended with exit code 1", id="error"
        ),
        pytest.param("print('garbage')", "printed invalid output", id="garbage"),
        pytest.param("", "printed invalid output", id="nothing"),
        pytest.param('print(\'{"error": 0, "seconds": 3}\')', "printed invalid output", id="nonsense"),
        pytest.param(GOOD.replace("1}", "-1}"), "printed invalid output", id="negative"),
        pytest.param(WRONG, "computed wrong values", id="wrong"),
        pytest.param(NOT_A_NUMBER, "computed wrong values", id="NaN"),
        pytest.param(ABSENT, "it does not support bf16 on this processor", id="absent"),
    ],
)
def test_a_child_that_fails_means_float32_with_one_line_in_the_log(
    simulate: Simulate, caplog: pytest.LogCaptureFixture, code: str, sentence: str
) -> None:
    children = simulate(code)
    with caplog.at_level(logging.INFO):
        assert not may_be_default("openvino")
        assert not may_be_default("openvino")
    assert len(children) == 1  # AMX, which is not announced, cannot be what is broken
    (line,) = [record.getMessage() for record in caplog.records]
    assert sentence in line
    with pytest.raises(
        UnsupportedError, match=f"bf16 cannot be used with OpenVINO here: .*{sentence}.*; use float32"
    ):
        require_bf16("openvino")
    restart()
    assert sentence in str(refusal("openvino"))
    assert len(children) == 1  # kept on disk


def test_a_child_that_hangs_is_ended_and_believed_for_a_day(
    simulate: Simulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    children = simulate("import time; time.sleep(1000)")
    monkeypatch.setattr(bf16_support, "TIMEOUT", 0.2)
    assert "did not finish within 0.2 seconds" in str(refusal("openvino"))
    restart()
    assert not may_be_default("openvino")
    assert len(children) == 1
    restart()
    now = bf16_support.time.time()
    monkeypatch.setattr(bf16_support.time, "time", lambda: now + bf16_support.DAY + 1)
    assert not may_be_default("openvino")
    assert len(children) == 2


@posix
def test_a_child_that_was_killed_from_outside_says_nothing_for_next_time(simulate: Simulate) -> None:
    children = simulate(SIGKILL)
    assert not may_be_default("openvino")
    restart()
    assert not may_be_default("openvino")
    assert len(children) == 2


def test_a_program_that_cannot_be_started_means_float32(
    simulate: Simulate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    simulate(GOOD)
    monkeypatch.setattr(bf16_support, "probe_command", lambda _: [str(tmp_path / "absent")])
    assert "could not be probed" in str(refusal("openvino"))
    restart()
    monkeypatch.setattr(bf16_support, "probe_command", lambda _: None)
    assert "from within this program" in str(refusal("openvino"))


@pytest.mark.parametrize("frozen", [True, False])
def test_a_frozen_program_does_not_start_itself(monkeypatch: pytest.MonkeyPatch, frozen: bool) -> None:
    monkeypatch.setattr(sys, "frozen", frozen, raising=False)
    assert (bf16_support.probe_command("torch") is None) is frozen


def test_bf16_that_works_is_the_default_only_where_it_is_faster(simulate: Simulate) -> None:
    simulate(GOOD)
    assert may_be_default("openvino")
    support = bf16_support.bf16_support("openvino")
    assert (support.float32_seconds, support.bf16_seconds, support.without_amx) == (2, 1, False)
    assert "it works, and took 0.50 times as long as float32" in support.reason
    assert VARIABLE not in os.environ
    simulate(SLOW)
    assert bf16_support.bf16_support("openvino", fresh=True).works
    assert refusal("openvino") is None  # it can be had by name
    assert not may_be_default("openvino")


def test_without_instructions_no_child_is_started(simulate: Simulate) -> None:
    children = simulate(GOOD, AVX2)
    assert "no bf16 instructions" in str(refusal("openvino"))
    assert not may_be_default("openvino")
    assert refusal("torch") is None  # which emulates it
    assert bf16_support.bf16_support("torch").emulated
    assert not may_be_default("torch")
    assert children == []
    assert not (bf16_support.record_path("torch")).exists()


def test_where_the_system_does_not_tell_the_flags_the_child_is_asked(simulate: Simulate) -> None:
    children = simulate(GOOD, Processor("Simulated", None))
    assert may_be_default("openvino")
    assert len(children) == 1


def test_a_library_that_is_not_installed_is_not_tried(
    simulate: Simulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    children = simulate(GOOD)
    monkeypatch.setattr(bf16_support, "_version", lambda _: None)
    assert "it is not installed" in str(refusal("openvino"))
    assert children == []


def test_broken_amx_is_switched_off_for_the_process(simulate: Simulate) -> None:
    children = simulate(GOOD_WITHOUT_AMX, AMX)
    support = bf16_support.bf16_support("openvino")
    assert len(children) == 2
    assert support.works
    assert support.without_amx
    assert support.reason.startswith("AMX is broken here (a short probe ended with ")
    assert f"with {SETTING}, it works" in support.reason
    assert os.environ[VARIABLE] == WITHOUT_AMX
    require_bf16("openvino")
    require_bf16("torch")  # its child inherits the variable
    assert len(children) == 3
    assert not bf16_support.bf16_support("torch").without_amx


def test_the_next_process_switches_it_off_from_the_record(
    simulate: Simulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    children = simulate(GOOD_WITHOUT_AMX, AMX)
    require_bf16("openvino")
    restart()
    monkeypatch.delenv(VARIABLE)
    require_bf16("openvino")
    assert os.environ[VARIABLE] == WITHOUT_AMX
    assert len(children) == 2


def test_a_library_that_was_loaded_before_is_refused_and_the_variable_is_named(simulate: Simulate) -> None:
    simulate(GOOD_WITHOUT_AMX, AMX, loaded=("torch",))
    assert refusal("openvino") is None
    for _ in range(2):  # also from what is kept
        with pytest.raises(
            AanetError, match=rf"PyTorch was loaded before .* set {SETTING} in the environment"
        ):
            require_bf16("torch")
        assert not may_be_default("torch")
        restart()


@pytest.mark.parametrize("code", ["print('garbage')", "raise SystemExit(3)"])
def test_what_switching_amx_off_does_not_cure_names_the_variable_too(simulate: Simulate, code: str) -> None:
    children = simulate(code, AMX)
    with pytest.raises(AanetError, match=f"and with {SETTING} it does not work either; use float32"):
        require_bf16("torch")
    assert len(children) == 2
    assert VARIABLE not in os.environ


def test_a_variable_that_is_set_already_is_left_alone(
    simulate: Simulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    children = simulate(GOOD_WITHOUT_AMX, AMX)
    monkeypatch.setenv(VARIABLE, "AVX512_CORE_AMX")
    assert f"with {VARIABLE}=AVX512_CORE_AMX in the environment" in str(refusal("openvino"))
    assert os.environ[VARIABLE] == "AVX512_CORE_AMX"
    assert len(children) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: "",
        lambda _: "[]",
        lambda text: text[: len(text) // 2],
        lambda _: "[" * 100_000,
        lambda text: text.replace('"works": true', '"works": "yes"'),
        lambda text: text.replace('"works"', '"worked"'),
        lambda text: text.replace('"bf16_seconds": 1.0', '"bf16_seconds": null'),
        lambda text: text.replace("Simulated", "Another"),
        lambda text: text.replace('"until": null', '"until": 1e99'),
        lambda text: text.replace('"until": null', '"until": "later"'),
    ],
)
def test_a_damaged_or_foreign_record_is_measured_again(
    simulate: Simulate, damage: Callable[[str], str]
) -> None:
    children = simulate(GOOD)
    assert may_be_default("openvino")
    path = bf16_support.record_path("openvino")
    whole = path.read_text()
    assert damage(whole) != whole
    path.write_text(damage(whole))
    restart()
    assert may_be_default("openvino")
    assert len(children) == 2
    assert path.read_text() == whole  # mended


def test_another_processor_version_or_setting_is_another_record(
    simulate: Simulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate(GOOD)
    paths = {bf16_support.record_path("openvino"), bf16_support.record_path("torch")}
    for processor in (AMX, Processor("Other", AVX512.flags), Processor("Simulated", AVX512.flags, "28")):
        monkeypatch.setattr(bf16_support, "this_processor", lambda processor=processor: processor)
        paths.add(bf16_support.record_path("openvino"))
    monkeypatch.setattr(bf16_support, "_version", lambda _: "1.0")
    paths.add(bf16_support.record_path("openvino"))
    monkeypatch.setenv(VARIABLE, "AVX2")
    paths.add(bf16_support.record_path("openvino"))
    assert len(paths) == 7


def test_a_folder_that_cannot_be_written_costs_only_time(
    simulate: Simulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    children = simulate(GOOD)
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("AANET_CACHE", str(tmp_path / "file"))
    assert may_be_default("openvino")
    assert "could not be cached" in caplog.text
    restart()
    assert may_be_default("openvino")
    assert len(children) == 2


def test_no_engine_computes_in_bf16_where_it_cannot_be_used(
    simulate: Simulate, monkeypatch: pytest.MonkeyPatch, converted
) -> None:
    simulate("raise SystemExit(3)")
    monkeypatch.setattr(engine.openvino.Core, "compile_model", lambda *_: pytest.fail("compiled"))
    with pytest.raises(AanetError, match="bf16 cannot be used with OpenVINO here"):
        OpenVINOEngine(converted.model, converted.spec, "bf16")
    with pytest.raises(AanetError, match="bf16 cannot be used with PyTorch here"):
        TorchEngine(converted.network, "cpu", "bf16")


def test_processors_are_told_apart() -> None:
    x86 = "processor : 0\nmodel name\t: Some CPU\ncpuid level\t: 28\nflags\t\t: fpu avx512_bf16 amx_tile\n\n"
    other = x86.replace("Some", "Second").replace("avx512_bf16", "avx2")
    processor = parse_cpuinfo((x86 + other).splitlines(keepends=True))
    assert processor == Processor("Some CPU", frozenset({"fpu", "avx512_bf16", "amx_tile"}), "28")
    assert processor.has_bf16
    assert processor.may_have_amx
    arm = parse_cpuinfo(["processor : 0\n", "Features : fp asimd bf16\n", "CPU part : 0xd40\n"])
    assert arm.has_bf16
    assert not arm.may_have_amx
    assert not AVX2.has_bf16
    silent = parse_cpuinfo([])
    assert silent.has_bf16 is None
    assert silent.may_have_amx
    assert this_processor().name


@pytest.mark.slow
@pytest.mark.parametrize("library", ["openvino", "torch"])
def test_the_real_probe_computes_rightly_and_leaves_no_core_behind(
    library: bf16_support.Library, tmp_path: Path
) -> None:
    if not this_processor().has_bf16:
        pytest.skip("this processor has no bf16 instructions")
    command = bf16_support.probe_command(library)
    done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
    if done.returncode:
        pytest.skip(str(refusal(library)))
    found = json.loads(done.stdout)
    assert 0 < found["error"] < bf16_support.LARGEST_ERROR
    assert list(tmp_path.iterdir()) == []


_FIRST_CONVOLUTION = {
    "torch": "import torch\n{}\n"
    "torch.nn.functional.conv2d(torch.ones(1, 32, 32, 32), torch.ones(32, 32, 3, 3))\n",
    "openvino": "import numpy, openvino\nfrom openvino import opset13 as ops\n{}\n"
    "image = ops.parameter([1, 32, 32, 32], numpy.float32)\n"
    "weight = ops.constant(numpy.ones((32, 32, 3, 3), numpy.float32))\n"
    "result = ops.convolution(image, weight, [1, 1], [1, 1], [1, 1], [1, 1])\n"
    "hint = {{'INFERENCE_PRECISION_HINT': 'f32'}}\n"
    "openvino.Core().compile_model(openvino.Model([result], [image]), 'CPU', hint)\n",
}


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the variable is one of x86")
@pytest.mark.parametrize("library", sorted(_FIRST_CONVOLUTION))
def test_the_variable_counts_when_it_is_set_before_the_first_convolution(library: str) -> None:
    """What switching AMX off rests on; seen with SSE 4.1, which every processor has."""
    setting = f"import os; os.environ['{VARIABLE}'] = 'SSE41'; os.environ['ONEDNN_VERBOSE'] = '1'"
    code = _FIRST_CONVOLUTION[library].format(setting)
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert "isa:Intel SSE4.1" in done.stdout
