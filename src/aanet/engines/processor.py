"""The name of this machine's processor and the instructions that it reports."""

from __future__ import annotations

import functools
import platform
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
# Two flags of x86 and one of Arm; processors with AVX10 also have bf16 instructions.
_BF16 = ("avx512_bf16", "amx_bf16", "bf16")


@dataclass(frozen=True)
class Processor:
    """A processor as described by the operating system.

    Attributes:
        name: The model name, or else the architecture.
        flags: The instructions that it reports; None if the system does not list them.
        cpuid_level: The last leaf of CPUID. Virtual machines with the same name and flags may differ in it,
            and AMX cannot be used without leaf 0x1D.
    """

    name: str
    flags: frozenset[str] | None
    cpuid_level: str = ""

    @property
    def has_bf16(self) -> bool | None:
        """Whether it reports bf16 instructions; None if that is unknown."""
        if self.flags is None:
            return None
        return any(flag in _BF16 or flag.startswith("avx10") for flag in self.flags)

    @property
    def may_have_amx(self) -> bool:
        """Whether it reports AMX, or its instructions are unknown."""
        return self.flags is None or any(flag.startswith("amx") for flag in self.flags)


@functools.cache
def this_processor() -> Processor:
    """Return the processor of this machine, in less than a millisecond."""
    if sys.platform == "darwin":
        return _mac()
    try:
        with _CPUINFO.open(encoding="utf-8", errors="replace") as lines:
            return parse_cpuinfo(lines)
    except OSError:
        return Processor(_generic_name(), None)


def parse_cpuinfo(lines: Iterable[str]) -> Processor:
    """Parse the first processor of /proc/cpuinfo; the others, possibly hundreds, are the same."""
    fields: dict[str, str] = {}
    for line in lines:
        key, colon, value = line.partition(":")
        if not colon and fields:  # the empty line after the first processor
            break
        fields[key.strip()] = value.strip()
    flags = fields.get("flags", fields.get("Features"))
    return Processor(
        fields.get("model name") or _generic_name(),
        None if flags is None else frozenset(flags.split()),
        fields.get("cpuid level", ""),
    )


def _mac() -> Processor:
    """Return the processor of a Mac; x86 Macs have no bf16 instructions, and Arm Macs report them."""
    arm = platform.machine() == "arm64"
    flags = {"bf16"} if arm and _sysctl("hw.optional.arm.FEAT_BF16") == "1" else set()
    return Processor(_sysctl("machdep.cpu.brand_string") or _generic_name(), frozenset(flags))


def _sysctl(name: str) -> str:
    try:
        done = subprocess.run(
            ["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _generic_name() -> str:
    return platform.processor() or platform.machine()
