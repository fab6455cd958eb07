"""A real server in a process of its own."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import httpx

COMMAND = "import typer; from aanet.cli.serve import serve; typer.run(serve)"
LIVE_COMMAND = "import typer; from aanet.cli.live import live; typer.run(live)"
# The child processes of this one run `fake_matcher`.
FAKE_COMMAND = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r}); import helpers.fake_matcher; "
    f"helpers.fake_matcher.use(); {COMMAND}"
)
_PATIENCE = 300  # seconds until a started server must say where it is


@dataclass
class Server:
    process: subprocess.Popen[str]
    url: str

    @property
    def api(self) -> str:
        return f"{self.url}api/v1"

    def match(self, files: dict[str, bytes], **query: object) -> httpx.Response:
        url = f"{self.api}/disparity"
        return httpx.post(url, files=as_form(files), params=query, timeout=60, trust_env=False)

    def get(self, path: str, **options: object) -> httpx.Response:
        return httpx.get(self.url.rstrip("/") + path, timeout=20, trust_env=False, **options)

    def taken(self, model: str = "sgbm") -> int:
        models = self.get("/api/v1/models").json()["models"]
        return next(each["taken"] for each in models if each["name"] == model)

    def stop(self) -> str:
        """Ask it to stop, and return what it has written to stderr."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=60)[1]


def as_form(files: dict[str, bytes]) -> dict[str, tuple[str, bytes]]:
    return {name: (f"{name}.bin", data) for name, data in files.items()}


def start_server(*options: str, cache: Path | None = None, command: str = COMMAND) -> Server:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if cache is not None:
        environment["AANET_CACHE"] = str(cache)
    if "aanet.cli.serve" in command and "--log-level" not in options:
        options += ("--log-level", "warning")  # nobody reads the pipe before the server stops
    process = subprocess.Popen(
        [sys.executable, "-c", command, "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], _PATIENCE)[0]:
        process.kill()
    line = process.stdout.readline()
    if "http://" not in line:
        process.kill()
        raise AssertionError(f"the server did not start: {line}{process.communicate()[1]}")
    address = line.split("http://")[1].split("/")[0]
    return Server(process, f"http://{address}/")
