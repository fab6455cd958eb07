"""Two hosts on this machine: network namespaces joined by a cable, with addresses that only they have."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

INTERFACE = "eth0"


@dataclass
class NetworkHost:
    """A network namespace and the processes that were started in it."""

    name: str
    address: str
    log: Path  # a file, because processes that print more than a pipe holds would wait for a reader
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start a command on this host; its output and errors go to the log."""
        words = ["ip", "netns", "exec", self.name, *command]
        with self.log.open("ab") as log:
            process = subprocess.Popen(words, env=environment, stdout=log, stderr=subprocess.STDOUT)
        self.started.append(process)
        return process

    def processes(self) -> list[int]:
        """The ids of all processes in the namespace."""
        return [int(each) for each in _ip("netns", "pids", self.name).stdout.split()]

    def kill(self) -> None:
        """End everything that runs on this host at once, as when it loses power."""
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        for each in self.started:
            each.wait()
        self.started.clear()


@contextlib.contextmanager
def two_network_hosts(logs: Path) -> Iterator[tuple[NetworkHost, NetworkHost]]:
    """Two hosts that reach each other and nothing else; skips the test where they cannot be made."""
    if sys.platform != "linux" or shutil.which("ip") is None:
        pytest.skip("network namespaces need Linux with iproute2")
    if os.geteuid() != 0:
        pytest.skip("making network namespaces needs root")
    names = [f"aanet-test-{os.getpid()}-{number}" for number in (1, 2)]
    hosts = tuple(
        NetworkHost(name, f"10.213.77.{number}", logs / f"{name}.log") for number, name in enumerate(names, 1)
    )
    try:
        for host in hosts:
            made = _ip("netns", "add", host.name)
            if made.returncode:
                pytest.skip(f"making network namespaces is not allowed here: {made.stderr.strip()}")
        first, second = hosts
        cable = f"link add {INTERFACE} netns {first.name} type veth peer name {INTERFACE} netns {second.name}"
        assert _ip(*cable.split()).returncode == 0
        for host in hosts:
            for words in (f"address add {host.address}/24 dev {INTERFACE}", f"link set {INTERFACE} up"):
                assert _ip("-n", host.name, *words.split()).returncode == 0
            assert _ip("-n", host.name, "link", "set", "lo", "up").returncode == 0
        yield first, second
    finally:
        for host in hosts:
            if Path("/run/netns", host.name).exists():
                host.kill()
                _ip("netns", "delete", host.name)


def _ip(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
