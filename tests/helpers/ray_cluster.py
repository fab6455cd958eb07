"""A Ray cluster of several nodes on this machine, over the loopback interface."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

LOOPBACK = "127.0.0.2"  # Ray replaces 127.0.0.1 by an address that others can reach
OBJECT_STORE = 80_000_000  # bytes; the least that Ray accepts is a little below


@contextmanager
def ray_cluster(*cpus: int) -> Iterator[Any]:
    """Start nodes with these numbers of processors; all of them end with the block."""
    pytest.importorskip("ray", reason="Ray is not installed; it is in the extra cluster")
    if sys.platform != "linux":
        pytest.skip("only Linux has more than one address of its own without setting it up")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    first, *others = cpus
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": first,
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE,
            "node_ip_address": LOOPBACK,
        },
    )
    _remember(cluster.head_node)
    try:
        for count in others:
            add_node(cluster, count)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()
        while _started:
            _started.pop().wait(30)


def add_node(cluster: Any, cpus: int) -> Any:
    """Add a node, which a test may kill."""
    node = cluster.add_node(num_cpus=cpus, object_store_memory=OBJECT_STORE, node_ip_address=LOOPBACK)
    _remember(node)
    return node


_started: list[subprocess.Popen[bytes]] = []  # Ray kills its processes, but does not wait for them


def _remember(node: Any) -> None:
    _started.extend(info.process for infos in node.all_processes.values() for info in infos)
