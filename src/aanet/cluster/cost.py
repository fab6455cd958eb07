"""What many pairs cost on many hosts, computed from what was measured on one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aanet.io.files import MEGABYTE

HEADINGS = ("hosts", "workers", "computing", "network", "storage", "driver", "hours", "bottleneck")


@dataclass(frozen=True)
class Measured:
    """Per pair, on one worker.

    Attributes:
        worker_seconds: Of one worker, with reading and writing.
        read_bytes: Both images.
        written_bytes: All outputs.
        manifest_bytes: The row of the manifest.
        driver_seconds: Of the one process that takes the rows and writes the manifest.
    """

    worker_seconds: float
    read_bytes: float
    written_bytes: float
    manifest_bytes: float
    driver_seconds: float


@dataclass(frozen=True)
class Site:
    """A cluster on paper; the numbers of bytes are per second.

    Attributes:
        workers_per_host: One per core, with one thread each.
        host_network: Between a host and the storage.
        storage: Of the storage, from and to all hosts together.
    """

    workers_per_host: int = 8
    host_network: float = 1250 * MEGABYTE  # 10 Gbit/s
    storage: float = 1250 * MEGABYTE  # a file server with the same connection


@dataclass(frozen=True)
class Cost:
    """Hours of all pairs, if each part were the only one; they overlap, so that the largest counts."""

    hosts: int
    workers: int
    computing: float
    network: float
    storage: float
    driver: float

    @property
    def hours(self) -> float:
        """The time of the run."""
        return max(self.computing, self.network, self.storage, self.driver)

    @property
    def bottleneck(self) -> str:
        """The part that takes this long."""
        parts = ("computing", "network", "storage", "driver")
        return max(parts, key=lambda part: float(getattr(self, part)))


def cost(measured: Measured, pairs: int, hosts: int, site: Site | None = None) -> Cost:
    """The cost of a number of pairs on a number of hosts."""
    site = site or Site()
    workers = hosts * site.workers_per_host
    moved = pairs * (measured.read_bytes + measured.written_bytes)
    return Cost(
        hosts,
        workers,
        computing=pairs * measured.worker_seconds / workers / 3600,
        network=moved / (hosts * site.host_network) / 3600,
        storage=(moved + pairs * measured.manifest_bytes) / site.storage / 3600,
        driver=pairs * measured.driver_seconds / 3600,
    )


def rows(costs: Sequence[Cost]) -> list[tuple[str, ...]]:
    """The cells of a table."""
    return [
        (
            *(str(each.hosts), str(each.workers)),
            *(f"{hours:.2f}" for hours in (each.computing, each.network, each.storage, each.driver)),
            *(f"{each.hours:.2f}", each.bottleneck),
        )
        for each in costs
    ]
