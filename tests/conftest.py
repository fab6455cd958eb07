"""Fixtures that every test may use."""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from aanet.engines.bf16_support import Library, bf16_support, refusal
from aanet.engines.processor import this_processor

# Nothing of a test run stays in the user's cache.
os.environ["AANET_CACHE"] = tempfile.mkdtemp(prefix="aanet-cache-")
atexit.register(shutil.rmtree, os.environ["AANET_CACHE"], ignore_errors=True)
# Two pytest workers share two cores; more threads than that only get in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Broken AMX can only be switched off before the libraries are loaded; where it is, bf16 can be tested.
if this_processor().may_have_amx:
    for _library in get_args(Library):
        bf16_support(_library)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real pairs that AANET_TEST_DATA names."""
    return _named_by("AANET_TEST_DATA", "a folder of real pairs")


@pytest.fixture(scope="session")
def paper_source() -> Path:
    """The LaTeX source of the paper that AANET_TEST_PAPER names."""
    return _named_by("AANET_TEST_PAPER", "the LaTeX source of the paper")


def _named_by(variable: str, what: str) -> Path:
    path = Path(os.environ.get(variable, ""))
    if not os.environ.get(variable) or not path.exists():
        pytest.skip(f"{variable} does not name {what}")
    return path


@pytest.fixture(scope="session")
def torch_bf16() -> None:
    """For tests that compute in bf16 with torch."""
    _skip_without_bf16("torch")


@pytest.fixture(scope="session")
def openvino_bf16() -> None:
    """For tests that compute in bf16 with OpenVINO."""
    _skip_without_bf16("openvino")


def _skip_without_bf16(library: Library) -> None:
    sentence = refusal(library)
    if sentence is not None:
        pytest.skip(sentence)


@pytest.fixture(scope="session", autouse=True)
def _float32_by_default() -> Iterator[None]:
    """Let tests that say nothing of precision compute in float32 on every processor."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aanet.engines.openvino.precision.choose_precision", lambda *_: "float32")
        yield


@pytest.fixture(autouse=True)
def _leave_the_process_as_it_was() -> Iterator[None]:
    """Give the next test denormal numbers and the system's own handling of children that end.

    Training flushes denormal numbers to zero for the whole process. PyTorch's loader leaves a handler for
    SIGCHLD behind, and with it the end of any later child kills a process that has run OpenVINO: a library
    sets an alternate stack for signals that is too small for the registers of some processors.
    """
    yield
    _handle_signals_on_the_ordinary_stack()
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)
    if hasattr(signal, "SIGCHLD"):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


class _SignalStack(ctypes.Structure):
    """`stack_t` of sigaltstack(2)."""

    _fields_ = (("pointer", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


def _handle_signals_on_the_ordinary_stack() -> None:
    if sys.platform == "linux":
        disable = 2
        ctypes.CDLL(None).sigaltstack(ctypes.byref(_SignalStack(None, disable, 0)), None)
