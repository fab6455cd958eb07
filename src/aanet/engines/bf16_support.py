"""Whether bf16 may be used on this machine: found out in a child process, once, before anybody relies on it.

A processor may announce instructions that it does not have.  Some virtual machines announce AMX without the
leaf of CPUID that describes its tiles; oneDNN, which computes inside OpenVINO and inside PyTorch, then builds
broken code, and the first convolution in bf16 ends the process with SIGILL.  No flag tells such a machine
from a sound one, so `bf16_probe` computes a little in a process of its own; what it finds is kept.

Broken AMX can be switched off: oneDNN follows the environment variable ONEDNN_MAX_CPU_ISA.  It reads it once,
PyTorch's when it first computes and OpenVINO's when it first loads its CPU plugin (asking for the plugin's
capabilities is enough).  Neither says whether that has happened.  So the variable is set in this process as
soon as AMX is known to be broken, and counts for the libraries that were not imported by then; in one that
was, bf16 is refused.  What may compute in bf16 therefore asks here before it imports the library.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import logging
import math
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from aanet.engines.openvino.cache import cache_folder
from aanet.engines.processor import this_processor
from aanet.errors import AanetError
from aanet.io.atomic import atomic_path

Library = Literal["openvino", "torch"]

VARIABLE, WITHOUT_AMX = "ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16"
SETTING = f"{VARIABLE}={WITHOUT_AMX}"
LARGEST_ERROR = 0.05  # of the largest value; sums of some hundred products in bf16 are right to 0.01
CLEARLY_FASTER = 0.95  # of the time of float32: what is nearer may be chance
TIMEOUT = 60.0  # seconds for what takes one on a quiet machine
DAY = (
    86400.0  # seconds for which a trial that was not done in time is believed: the machine may have been busy
)
_TITLES = {"openvino": "OpenVINO", "torch": "PyTorch"}
_PROBE = Path(__file__).with_name("bf16_probe.py")
_log = logging.getLogger(__name__)
_lock = threading.Lock()
_answers: dict[str, Bf16Support] = {}
_loaded_too_early: set[str] = set()


@dataclass(frozen=True)
class Bf16Support:
    """What is known of bf16 in one library on this machine.

    Attributes:
        works: Whether it computes the right numbers, if need be without AMX.
        reason: What was found, as a sentence without its full stop.
        without_amx: Whether it works only with AMX switched off.
        float32_seconds: Of the probe; None where nothing was timed.
        bf16_seconds: The same in bf16.
    """

    works: bool
    reason: str
    without_amx: bool = False
    float32_seconds: float | None = None
    bf16_seconds: float | None = None

    @property
    def faster(self) -> bool:
        """Whether it took clearly less time than float32."""
        if self.float32_seconds is None or self.bf16_seconds is None:
            return False
        return self.works and self.bf16_seconds < CLEARLY_FASTER * self.float32_seconds

    @property
    def emulated(self) -> bool:
        """Whether it works without instructions for it, and was not timed because it must be slow."""
        return self.works and self.bf16_seconds is None


def bf16_support(library: Library, fresh: bool = False) -> Bf16Support:
    """What is known of bf16 here: at no cost without bf16 instructions, else from a small trial that is kept.

    Where AMX proves broken, it is switched off for this process and its children.

    Args:
        library: What would compute.
        fresh: Try it again, whatever was kept.
    """
    with _lock:
        if fresh or library not in _answers:
            support = _without_trial(library) or (None if fresh else _read(library))
            if support is None:
                support = _try_out(library)
                _log.info("bf16 with %s: %s.", _TITLES[library], support.reason)
            _answers[library] = support
            if support.without_amx:
                _switch_amx_off()
        return _answers[library]


def refusal(library: Library) -> str | None:
    """Why bf16 cannot be used in this process, as a sentence; None where it can."""
    support = bf16_support(library)
    title = _TITLES[library]
    if not support.works:
        return f"bf16 cannot be used with {title} here: {support.reason}; float32 can."
    if library in _loaded_too_early:
        return (
            f"bf16 cannot be used with {title} in this process: AMX is broken here, and {title} was loaded "
            f"before it could be switched off; set {SETTING} in the environment before Python starts."
        )
    return None


def require_bf16(library: Library) -> None:
    """Refuse bf16, asked for by name, where it cannot be used."""
    sentence = refusal(library)
    if sentence is not None:
        raise AanetError(sentence)


def worth_trying(library: Library) -> bool:
    """Whether bf16 may be a default: it can be used, and was faster than float32."""
    return refusal(library) is None and bf16_support(library).faster


def probe_command(library: Library) -> list[str] | None:
    """The command that tries bf16; None where this program is no Python that could be started again."""
    if not sys.executable or getattr(sys, "frozen", False):
        return None
    return [sys.executable, str(_PROBE), library]


def machine() -> dict[str, Any]:
    """What decides how a machine computes, library aside; a record of another machine is no use here."""
    processor = this_processor()
    return {
        "processor": processor.name,
        "flags": None if processor.flags is None else sorted(processor.flags),
        "cpuid level": processor.cpuid_level,
        VARIABLE: os.environ.get(VARIABLE),
    }


def _without_trial(library: Library) -> Bf16Support | None:
    """The answer where no trial is needed, or none is possible."""
    if _version(library) is None:
        return Bf16Support(False, "it is not installed")
    if this_processor().has_bf16 is False:
        if library == "torch":
            return Bf16Support(
                True, "this processor has no bf16 instructions; it is emulated, many times as slow as float32"
            )
        return Bf16Support(False, "this processor has no bf16 instructions")
    if probe_command(library) is None:
        return Bf16Support(False, "it cannot be tried out from within this program")
    return None


def _try_out(library: Library) -> Bf16Support:
    support, lasts = _probe(library, None)
    if not support.works and VARIABLE in os.environ:
        note = f"{support.reason}, with {VARIABLE}={os.environ[VARIABLE]} in the environment"
        support = replace(support, reason=note)
    elif not support.works and this_processor().may_have_amx:
        cured, _ = _probe(library, WITHOUT_AMX)
        if cured.works:
            reason = f"AMX is broken here ({support.reason}); switched off by {SETTING}, {cured.reason}"
            support, lasts = replace(cured, reason=reason, without_amx=True), math.inf
        else:
            note = f"{support.reason}, and with {SETTING} it does not work either"
            support = replace(support, reason=note)
    if lasts:
        _write(library, support, lasts)
    return support


def _probe(library: Library, isa: str | None) -> tuple[Bf16Support, float]:
    """Run the child, with another `isa` for oneDNN if one is given.

    Also return for how many seconds to believe what it found.
    """
    command = probe_command(library)
    assert command is not None
    # It must find what this process finds, also where the path was changed after the start.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    if isa is not None:
        environment[VARIABLE] = isa
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        reason = f"a small trial of it was not done after {TIMEOUT:g} seconds (`aanet doctor` tries again)"
        return Bf16Support(False, reason), DAY
    except OSError as error:
        return Bf16Support(False, f"it could not be tried out ({error.strerror or error})"), 0
    if done.returncode:
        ending = _ending(done.returncode)
        # A signal from outside says nothing of bf16.
        lasts = 0 if ending in ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP") else math.inf
        return Bf16Support(False, f"a small trial of it ended with {ending}"), lasts
    return _judge(done.stdout), math.inf


def _ending(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"


def _judge(output: bytes) -> Bf16Support:
    try:
        found = json.loads(output)
        if found is None:  # as on Arm, whatever the processor has
            return Bf16Support(False, "it does not compute in bf16 on this processor")
        error, times = float(found["error"]), found["seconds"]
        float32, bf16 = float(times["float32"]), float(times["bf16"])
        if not (0 < float32 < math.inf and 0 < bf16 < math.inf):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        return Bf16Support(False, "a small trial of it printed what makes no sense")
    if not error < LARGEST_ERROR:  # also where it is not a number
        return Bf16Support(False, "a small trial of it gave wrong numbers")
    reason = f"it works, and took {bf16 / float32:.2f} times as long as float32 in a small trial"
    return Bf16Support(True, reason, False, float32, bf16)


def _switch_amx_off() -> None:
    """Set the variable; what was imported by now may have read its absence."""
    if VARIABLE not in os.environ:
        _loaded_too_early.update(filter(_is_loaded, _TITLES))
        os.environ[VARIABLE] = WITHOUT_AMX


def _is_loaded(library: str) -> bool:
    return library in sys.modules


def _version(library: Library) -> str | None:
    """Without importing it."""
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return None


def _key(library: Library) -> dict[str, Any]:
    """All that decides the answer."""
    return {**machine(), library: _version(library), "probe": _digest_of_probe()}


@functools.cache
def _digest_of_probe() -> str:
    return hashlib.sha256(_PROBE.read_bytes()).hexdigest()[:16]


def record_path(library: Library) -> Path:
    """Where the answer is kept; machines that share a folder have a file each."""
    digest = hashlib.sha256(json.dumps(_key(library)).encode()).hexdigest()[:16]
    return cache_folder() / "bf16" / f"{library}-{digest}.json"


def _write(library: Library, support: Bf16Support, lasts: float) -> None:
    until = time.time() + lasts if math.isfinite(lasts) else None
    try:
        content = {"key": _key(library), "support": asdict(support), "until": until}
        with atomic_path(record_path(library)) as temporary:
            temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    except (AanetError, OSError, RuntimeError) as error:
        _log.warning("Whether bf16 works is tried again next time: %s", error)


def _read(library: Library) -> Bf16Support | None:
    """What was found before; None without a record, and if it is damaged, too old or of another machine."""
    try:
        content = json.loads(record_path(library).read_text(encoding="utf-8"))
        support, until, now = Bf16Support(**content["support"]), content["until"], time.time()
        kinds = [type(value) for value in asdict(support).values()]
        whole = kinds[:3] == [bool, str, bool] and kinds[3:] in ([float, float], [type(None)] * 2)
        valid = content["key"] == _key(library) and (until is None or now < until <= now + DAY)
        return support if whole and valid else None
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        RuntimeError,
    ):  # the last: no home, or nested too deeply
        return None
