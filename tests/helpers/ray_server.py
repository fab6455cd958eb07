"""The application for Ray Serve in a Ray of its own on this machine, with the options of `aanet serve`.

Started as `aanet serve` is by `helpers.server`: it prints its address, and SIGTERM stops it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from helpers.server import Server

COMMAND = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r}); "
    "import helpers.ray_server; helpers.ray_server.main()"
)
PROCESSORS = 2  # that Ray counts on, whatever this machine has
OBJECT_STORE_BYTES = 150_000_000


def require_ray() -> None:
    """Skip a test where Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed (extra cluster)")


def processes(server: Server, deployment: str) -> list[psutil.Process]:
    """The processes of the replicas of a deployment."""
    found = []
    for each in psutil.Process(server.process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error, IndexError):  # it has just ended
            if each.cmdline()[0].startswith("ray::ServeReplica:") and f":{deployment}" in each.cmdline()[0]:
                found.append(each)
    return found


def replicas(server: Server) -> list[psutil.Process]:
    """The processes of the replicas of SGBM."""
    return processes(server, "matcher-sgbm")


def main() -> None:
    """Run `serve run` until SIGTERM comes; `--max-upload-mb 2` becomes its word `max_upload_mb=2`.

    `--config FILE` names a configuration file of Ray Serve instead.
    """
    options = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    port = int(options.pop("--port")) or free_port()
    what = options.pop("--config", "aanet.cluster.service:app")
    words = [f"{name[2:].replace('-', '_')}={value}" for name, value in options.items()]
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # On busy cores a process takes longer to start than the five seconds after which Ray kills its proxy.
    os.environ["RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S"] = "60"
    import ray
    from ray import serve
    from ray.serve.scripts import cli

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # waited for below
    folder = tempfile.mkdtemp(prefix="ray-")  # short, because the paths of sockets have a limit
    try:
        ray.init(
            num_cpus=PROCESSORS,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
            object_store_memory=OBJECT_STORE_BYTES,
            _node_ip_address="127.0.0.1",
            _temp_dir=folder,
        )
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        with contextlib.redirect_stdout(sys.stderr):
            cli.main(["run", "--non-blocking", what, *words], standalone_mode=False)
        while any(each.status != "RUNNING" for each in serve.status().applications.values()):
            time.sleep(0.1)
        print(f"Web page: http://127.0.0.1:{port}/", flush=True)
        signal.sigwait({signal.SIGTERM})
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
