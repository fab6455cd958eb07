"""What this machine's processor is called and which instructions it announces."""

from __future__ import annotations

import functools
import platform
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
# x86, x86, and Arm; every processor with AVX10 computes in bf16 as well.
_BF16 = ("avx512_bf16", "amx_bf16", "bf16")


@dataclass(frozen=True)
class Processor:
    """A processor as the system describes it.

    Attributes:
        name: Its own name, or at least its architecture's.
        flags: The instructions that it announces; None where the system does not tell them.
        cpuid_level: The last leaf of CPUID.  Two virtual machines may agree in name and flags, and only one
            of them have leaf 0x1D, without which AMX cannot be used.
    """

    name: str
    flags: frozenset[str] | None
    cpuid_level: str = ""

    @property
    def has_bf16(self) -> bool | None:
        """Whether it announces bf16 instructions; None where that is not known."""
        if self.flags is None:
            return None
        return any(flag in _BF16 or flag.startswith("avx10") for flag in self.flags)

    @property
    def may_have_amx(self) -> bool:
        """Whether it announces AMX, or may."""
        return self.flags is None or any(flag.startswith("amx") for flag in self.flags)


@functools.cache
def this_processor() -> Processor:
    """The processor of this machine; costs less than a millisecond."""
    if sys.platform == "darwin":
        return _mac()
    try:
        with _CPUINFO.open(encoding="utf-8", errors="replace") as lines:
            return parse_cpuinfo(lines)
    except OSError:
        return Processor(_generic_name(), None)


def parse_cpuinfo(lines: Iterable[str]) -> Processor:
    """Read the first processor of /proc/cpuinfo; the others are alike, and there may be hundreds."""
    fields: dict[str, str] = {}
    for line in lines:
        key, colon, value = line.partition(":")
        if not colon and fields:  # the empty line behind the first one
            break
        fields[key.strip()] = value.strip()
    flags = fields.get("flags", fields.get("Features"))
    return Processor(
        fields.get("model name") or _generic_name(),
        None if flags is None else frozenset(flags.split()),
        fields.get("cpuid level", ""),
    )


def _mac() -> Processor:
    """No Mac with an x86 processor has bf16; those of Arm say whether they do."""
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
