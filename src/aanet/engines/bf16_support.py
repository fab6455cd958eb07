"""Whether bf16 works on this machine, determined once in a child process and cached.

A processor may report instructions that it does not have. Some virtual machines report AMX without the CPUID
leaf that describes its tiles; oneDNN, which OpenVINO and PyTorch use, then generates invalid code, and the
first convolution in bf16 kills the process with SIGILL. No CPU flag distinguishes such a machine, so
`bf16_probe` runs a small computation in a separate process, and the result is cached.

Broken AMX can be disabled with oneDNN's environment variable ONEDNN_MAX_CPU_ISA. It is read only once: by
PyTorch at its first computation and by OpenVINO when it loads its CPU plugin, for which a query of the
plugin's capabilities is enough. Neither library reports whether it has read the variable. It is therefore set
in this process as soon as AMX is known to be broken and takes effect for libraries imported later; bf16 is
refused for a library that was already imported. Code that may compute in bf16 must call `bf16_support` before
it imports the library.
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
from aanet.errors import AanetError, UnsupportedError
from aanet.io.atomic import atomic_path

Library = Literal["openvino", "torch"]

VARIABLE, WITHOUT_AMX = "ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16"
SETTING = f"{VARIABLE}={WITHOUT_AMX}"
LARGEST_ERROR = 0.05  # relative to the largest value; sums of a few hundred products are accurate to 0.01
CLEARLY_FASTER = 0.95  # fraction of the float32 time; smaller differences may be noise
TIMEOUT = 60.0  # seconds; the probe takes about one second on an idle machine
DAY = 86400.0  # seconds for which a timeout is cached, because the machine may only have been busy
_TITLES = {"openvino": "OpenVINO", "torch": "PyTorch"}
_PROBE = Path(__file__).with_name("bf16_probe.py")
_log = logging.getLogger(__name__)
_lock = threading.Lock()
_results: dict[str, Bf16Support] = {}
_loaded_with_amx: set[str] = set()


@dataclass(frozen=True)
class Bf16Support:
    """The result of probing bf16 in one library on this machine.

    Attributes:
        works: Whether it computes correct values, if necessary without AMX.
        reason: The result as a sentence without a period.
        without_amx: Whether it works only with AMX disabled.
        float32_seconds: Time of the probe in float32; None if it was not timed.
        bf16_seconds: Time of the probe in bf16; None if it was not timed.
    """

    works: bool
    reason: str
    without_amx: bool = False
    float32_seconds: float | None = None
    bf16_seconds: float | None = None

    @property
    def faster(self) -> bool:
        """Whether bf16 took clearly less time than float32."""
        if self.float32_seconds is None or self.bf16_seconds is None:
            return False
        return self.works and self.bf16_seconds < CLEARLY_FASTER * self.float32_seconds

    @property
    def emulated(self) -> bool:
        """Whether bf16 works without bf16 instructions; it is then slow and was not timed."""
        return self.works and self.bf16_seconds is None


def bf16_support(library: Library, fresh: bool = False) -> Bf16Support:
    """Return whether bf16 works, from the cache or else from a short probe in a child process.

    Processors without bf16 instructions need no probe. If AMX is broken, it is disabled for this process and
    its children.

    Args:
        library: The library that would compute in bf16.
        fresh: Ignore cached results.
    """
    with _lock:
        if fresh or library not in _results:
            support = _result_without_probe(library) or (None if fresh else _read(library))
            if support is None:
                support = _probe_with_and_without_amx(library)
                _log.info("bf16 with %s: %s.", _TITLES[library], support.reason)
            _results[library] = support
            if support.without_amx:
                _disable_amx()
        return _results[library]


def refusal(library: Library) -> str | None:
    """Return why bf16 cannot be used in this process, as a sentence, or None if it can be used."""
    support = bf16_support(library)
    title = _TITLES[library]
    if not support.works:
        return f"bf16 cannot be used with {title} here: {support.reason}; use float32."
    if library in _loaded_with_amx:
        return (
            f"bf16 cannot be used with {title} in this process: AMX is broken here, and {title} was loaded "
            f"before it could be disabled; set {SETTING} in the environment before Python starts."
        )
    return None


def require_bf16(library: Library) -> None:
    """Raise an error if bf16 cannot be used."""
    sentence = refusal(library)
    if sentence is not None:
        raise UnsupportedError(sentence)


def may_be_default(library: Library) -> bool:
    """Whether bf16 is a candidate for the default precision: it works and was faster than float32."""
    return refusal(library) is None and bf16_support(library).faster


def probe_command(library: Library) -> list[str] | None:
    """Return the command that runs the probe, or None if no Python interpreter can be started."""
    if not sys.executable or getattr(sys, "frozen", False):
        return None
    return [sys.executable, str(_PROBE), library]


def machine() -> dict[str, Any]:
    """Return the properties of this machine that results depend on; results of other machines are invalid."""
    processor = this_processor()
    return {
        "processor": processor.name,
        "flags": None if processor.flags is None else sorted(processor.flags),
        "cpuid level": processor.cpuid_level,
        VARIABLE: os.environ.get(VARIABLE),
    }


def _result_without_probe(library: Library) -> Bf16Support | None:
    """Return the result if no probe is needed or possible."""
    if _version(library) is None:
        return Bf16Support(False, "it is not installed")
    if this_processor().has_bf16 is False:
        if library == "torch":
            return Bf16Support(
                True, "this processor has no bf16 instructions; bf16 is emulated and much slower than float32"
            )
        return Bf16Support(False, "this processor has no bf16 instructions")
    if probe_command(library) is None:
        return Bf16Support(False, "it cannot be probed from within this program")
    return None


def _probe_with_and_without_amx(library: Library) -> Bf16Support:
    support, lifetime = _probe(library, None)
    if not support.works and VARIABLE in os.environ:
        note = f"{support.reason}, with {VARIABLE}={os.environ[VARIABLE]} in the environment"
        support = replace(support, reason=note)
    elif not support.works and this_processor().may_have_amx:
        retried, _ = _probe(library, WITHOUT_AMX)
        if retried.works:
            reason = f"AMX is broken here ({support.reason}); with {SETTING}, {retried.reason}"
            support, lifetime = replace(retried, reason=reason, without_amx=True), math.inf
        else:
            note = f"{support.reason}, and with {SETTING} it does not work either"
            support = replace(support, reason=note)
    if lifetime:
        _write(library, support, lifetime)
    return support


def _probe(library: Library, isa: str | None) -> tuple[Bf16Support, float]:
    """Run the probe, optionally limiting oneDNN to `isa`.

    Returns:
        The result, and the number of seconds for which it may be cached.
    """
    command = probe_command(library)
    assert command is not None
    # The child must find the same packages, even if sys.path was changed after startup.
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
        reason = f"a short probe did not finish within {TIMEOUT:g} seconds (`aanet doctor` repeats it)"
        return Bf16Support(False, reason), DAY
    except OSError as error:
        return Bf16Support(False, f"it could not be probed ({error.strerror or error})"), 0
    if done.returncode:
        ending = _exit_reason(done.returncode)
        # A signal sent by another process is unrelated to bf16.
        lifetime = 0 if ending in ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP") else math.inf
        return Bf16Support(False, f"a short probe ended with {ending}"), lifetime
    return _parse_result(done.stdout), math.inf


def _exit_reason(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"


def _parse_result(output: bytes) -> Bf16Support:
    try:
        found = json.loads(output)
        if found is None:  # e.g. OpenVINO on Arm
            return Bf16Support(False, "it does not support bf16 on this processor")
        error, times = float(found["error"]), found["seconds"]
        float32, bf16 = float(times["float32"]), float(times["bf16"])
        if not (0 < float32 < math.inf and 0 < bf16 < math.inf):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        return Bf16Support(False, "a short probe printed invalid output")
    if not error < LARGEST_ERROR:  # also true for NaN
        return Bf16Support(False, "a short probe computed wrong values")
    reason = f"it works, and took {bf16 / float32:.2f} times as long as float32 in a short probe"
    return Bf16Support(True, reason, False, float32, bf16)


def _disable_amx() -> None:
    """Set the variable; libraries that are already imported may have read it unset."""
    if VARIABLE not in os.environ:
        _loaded_with_amx.update(filter(_is_loaded, _TITLES))
        os.environ[VARIABLE] = WITHOUT_AMX


def _is_loaded(library: str) -> bool:
    return library in sys.modules


def _version(library: Library) -> str | None:
    """Return the installed version without importing the library."""
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return None


def _key(library: Library) -> dict[str, Any]:
    """Return everything that the result depends on."""
    return {**machine(), library: _version(library), "probe": _probe_digest()}


@functools.cache
def _probe_digest() -> str:
    return hashlib.sha256(_PROBE.read_bytes()).hexdigest()[:16]


def record_path(library: Library) -> Path:
    """Return the path of the cached result; machines that share a cache folder have separate files."""
    digest = hashlib.sha256(json.dumps(_key(library)).encode()).hexdigest()[:16]
    return cache_folder() / "bf16" / f"{library}-{digest}.json"


def _write(library: Library, support: Bf16Support, lifetime: float) -> None:
    until = time.time() + lifetime if math.isfinite(lifetime) else None
    try:
        content = {"key": _key(library), "support": asdict(support), "until": until}
        with atomic_path(record_path(library)) as temporary:
            temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    except (AanetError, OSError, RuntimeError) as error:
        _log.warning("The result of the bf16 probe could not be cached: %s", error)


def _read(library: Library) -> Bf16Support | None:
    """Return the cached result, or None if it is missing, damaged, expired or of another machine."""
    try:
        content = json.loads(record_path(library).read_text(encoding="utf-8"))
        support, until, now = Bf16Support(**content["support"]), content["until"], time.time()
        kinds = [type(value) for value in asdict(support).values()]
        well_formed = kinds[:3] == [bool, str, bool] and kinds[3:] in ([float, float], [type(None)] * 2)
        valid = content["key"] == _key(library) and (until is None or now < until <= now + DAY)
        return support if well_formed and valid else None
    # RuntimeError: there is no home directory, or the JSON is nested too deeply.
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        return None
