"""Throughput of `aanet serve` beside Ray Serve with one and two replicas, all on this machine.

    python scripts/measure_replicas.py [MODEL] [--rounds 2] [--seconds 8] [--clients 4]

Every matcher has one thread. The servers take turns: each is started, measured with `aanet.benchmark.load`
and stopped, and then all of them once more.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean, median

from aanet.benchmark.load import Level, make_request, measure, start_server
from aanet.evaluation import markdown

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from helpers.ray_server import COMMAND

RAY = (sys.executable, "-c", COMMAND)
SERVERS = {
    "`aanet serve`": None,
    "one replica": (*RAY, "--replicas", "1"),
    "two replicas": (*RAY, "--replicas", "2"),
}
SIZES = ((240, 320), (480, 640))
HEADINGS = ("server", "size", "clients", "matched/s", "p50", "p99", "failed", "memory")


def row(name: str, size: tuple[int, int], levels: list[Level]) -> tuple[str, ...]:
    """Return the row of a server: all rounds together."""
    latencies = sorted(latency for level in levels for latency in level.latencies)
    failed = sum(count for level in levels for status, count in level.statuses.items() if status != "200")
    return (
        name,
        f"{size[1]}×{size[0]}",
        str(levels[0].clients),
        " and ".join(f"{len(level.latencies) / level.seconds:.1f}" for level in levels),
        f"{median(latencies):.2f} s",
        f"{latencies[int(0.99 * (len(latencies) - 1))]:.2f} s",
        str(failed),
        f"{mean(amount for level in levels for _, amount in level.memory) / 1e6:.0f} MB",
    )


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", nargs="?", default="aanet_fast")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--clients", type=int, default=4)
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", OPENCV_FOR_THREADS_NUM="1")
    seen: dict[tuple[str, tuple[int, int]], list[Level]] = defaultdict(list)
    requests = {size: make_request(*size) for size in SIZES}
    for _ in range(options.rounds):
        for name, command in SERVERS.items():
            with start_server(options.model, command) as server:
                for size, request in requests.items():
                    seen[name, size] += measure(server, request, [options.clients], options.seconds)
    rows = [row(*key, levels) for key, levels in sorted(seen.items(), key=_size)]
    print("\n".join(markdown.table(HEADINGS, rows)))


def _size(item: tuple[tuple[str, tuple[int, int]], list[Level]]) -> tuple[int, int]:
    return item[0][1]


if __name__ == "__main__":
    main()
