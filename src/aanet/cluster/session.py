"""A connection to Ray: a cluster that runs, or one on this machine for the time of a command."""

from __future__ import annotations

import logging
import os
import platform
import re
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from aanet.errors import InputError, UnsupportedError
from aanet.version import __version__

# On Linux, Ray replaces 127.0.0.1 by an address that others can reach; elsewhere, it uses loopback itself.
_LOOPBACK = "127.0.0.2"
_CONNECT_SECONDS = 5.0
_PROBE_SECONDS = 300.0  # until a node has started a process, converted a network and answered
_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})")


class Cluster(NamedTuple):
    """What a session offers."""

    cpus: int
    nodes: int


@contextmanager
def session(address: str, cpus: int | None = None) -> Iterator[Cluster]:
    """Connect to a cluster whose nodes have the versions of this process, until the block ends.

    Args:
        address: "auto" for the cluster of this machine, "local" for a new one on it, or HOST:PORT.
        cpus: The size of a new one; by default one per core.
    """
    ray = start_quietly()
    if ray.is_initialized():  # by the program that calls this one, which also ends it
        yield _checked(ray)
        return
    _connect(ray, address, cpus)
    try:
        yield _checked(ray)
    finally:
        ray.shutdown()


def start_quietly() -> Any:
    """Import Ray; it sends no usage statistics and prints nothing, because commands report themselves."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # what its core prints is for its developers
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray
    import ray.data

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return ray


def versions() -> dict[str, str]:
    """What must be the same on all nodes."""
    import ray

    python = ".".join(platform.python_version_tuple()[:2])
    return {"aanet": __version__, "Python": python, "ray": ray.__version__}


def _connect(ray: Any, address: str, cpus: int | None) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address == "local":
        # Nobody else may hand work to a cluster that is meant for one command.
        quiet |= {"_node_ip_address": _LOOPBACK} if sys.platform == "linux" else {}
        ray.init(address="local", num_cpus=cpus, include_dashboard=False, **quiet)
        return
    require_reachable(address)
    try:
        ray.init(address=address, **quiet)
    except ConnectionError as error:
        where = "on this machine" if address == "auto" else f"at {address}"
        raise InputError(
            f"There is no Ray cluster {where}; start one with ray start --head, or use --ray local."
        ) from error
    except RuntimeError as error:
        if "ersion mismatch" in str(error):
            found = " ".join(str(error).split())
            raise UnsupportedError(f"The cluster at {address} has other versions: {found[:300]}") from error
        raise InputError(f"Cannot connect to Ray at {address}: {_first_sentence(error)}.") from error
    except ValueError as error:
        raise InputError(f"Cannot connect to Ray at {address}: {_first_sentence(error)}.") from error


def require_reachable(address: str) -> None:
    """Refuse an address that nobody answers at; Ray itself would try for minutes."""
    if address in ("auto", "local"):
        return
    parts = _ADDRESS.fullmatch(address)
    if parts is None or not 0 < int(parts["port"]) < 65536:
        raise InputError(
            f"A Ray cluster is auto, local or HOST:PORT, such as 10.0.0.1:6379; got {address!r}."
        )
    host = parts["host"].strip("[]")
    if host in ("localhost", "127.0.0.1", "::1"):
        import ray.util

        host = ray.util.get_node_ip_address()  # as Ray does, because other nodes cannot use the given one
    try:
        place = (host, int(parts["port"]))
        with socket.create_connection(place, _CONNECT_SECONDS) as connection:
            answers = os.environ.get("RAY_USE_TLS") == "1" or _speaks_grpc(connection)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"The Ray cluster at {address} cannot be reached: {reason}.") from error
    if not answers:
        raise InputError(
            f"What answers at {address} is not a Ray cluster; its address ends in :6379 usually."
        )


def _speaks_grpc(connection: socket.socket) -> bool:
    """Whether the other side answers the beginning of HTTP/2 with its settings, as servers of gRPC do."""
    settings = 4  # the type of a frame, its fourth byte
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, settings, 0, 0, 0, 0, 0)))
    try:
        frame = connection.recv(9)
    except TimeoutError:
        return False
    return len(frame) == 9 and frame[3] == settings


def _checked(ray: Any) -> Cluster:
    """The cluster, after each of its nodes has told its versions."""
    expected, found_nodes = versions(), nodes()
    if not found_nodes:
        raise UnsupportedError("The Ray cluster has no node with a processor for tasks.")
    for node, answer in on_every_node(ray.remote(_found_versions()), 0):
        name = _name(node)
        try:
            found = answer()
        except ray.exceptions.GetTimeoutError as error:
            raise UnsupportedError(
                f"The node {name} did not answer within {_PROBE_SECONDS:g} seconds."
            ) from error
        except ray.exceptions.RayError as error:
            if not is_alive(node):
                continue  # it has just died, and others do its work
            raise UnsupportedError(f"The node {name} cannot run tasks: {_first_sentence(error)}.") from error
        for what, version in expected.items():
            if found[what] != version:
                has = found[what] or "(not installed)"
                raise UnsupportedError(f"The node {name} has {what} {has}; this process has {version}.")
    return Cluster(sum(int(node["Resources"]["CPU"]) for node in found_nodes), len(found_nodes))


def nodes(cpus: int = 1) -> list[dict[str, Any]]:
    """The nodes of the cluster with at least this number of processors."""
    import ray

    all_nodes: list[dict[str, Any]] = ray.nodes()
    return [node for node in all_nodes if node["Alive"] and node["Resources"].get("CPU", 0) >= cpus]


def capacity(threads: int) -> int:
    """The number of workers with this number of threads that fit into the cluster."""
    count = sum(int(node["Resources"]["CPU"]) // threads for node in nodes(threads))
    if not count:
        raise UnsupportedError(f"No node of the Ray cluster has {threads} processors for a worker.")
    return count


def is_alive(node: dict[str, Any]) -> bool:
    """Whether a node is still there."""
    return node["NodeID"] in [each["NodeID"] for each in nodes()]


def on_every_node(task: Any, cpus: int) -> list[tuple[dict[str, Any], Callable[[], Any]]]:
    """Start a remote function on all nodes at once; each function that is returned waits for one result."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    started: list[tuple[dict[str, Any], Callable[[], Any]]] = []
    for node in nodes(max(cpus, 1)):
        where = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        answer = task.options(num_cpus=cpus, scheduling_strategy=where).remote()
        started.append((node, partial(ray.get, answer, timeout=_PROBE_SECONDS)))
    return started


def _found_versions() -> Callable[[], dict[str, str | None]]:
    """A function that tells the versions of a node; it is sent there, and needs nothing of this package."""

    def found() -> dict[str, str | None]:
        import contextlib
        import platform

        import ray

        aanet: str | None = None
        with contextlib.suppress(ImportError):
            from aanet.version import __version__ as aanet
        python = ".".join(platform.python_version_tuple()[:2])
        return {"aanet": aanet, "Python": python, "ray": ray.__version__}

    return found


def _name(node: dict[str, Any]) -> str:
    return f"{node['NodeManagerHostname']} ({node['NodeID'][:8]})"


def _first_sentence(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:300].rstrip(".")
