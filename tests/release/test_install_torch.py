"""`scripts/install_torch.py` takes the CPU build where it can, and delays nothing where it cannot."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType

import pytest

from aanet.cli import doctor
from helpers.scripts import load_script

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script on a Linux machine without an NVIDIA driver."""
    module = load_script("install_torch")
    monkeypatch.setattr(module, "wants_cpu_build", lambda: True)
    return module


def installed(script: ModuleType, reachable: bool, failing: str = "none") -> list[list[str]]:
    """What pip is called with; calls that contain `failing` fail."""
    calls: list[list[str]] = []

    def pip(arguments: list[str]) -> int:
        calls.append(arguments)
        return int(failing in arguments)

    asked: list[str] = []
    script.install(pip, lambda address: asked.append(address) or reachable)  # type: ignore[func-returns-value]
    assert asked in ([], [script.CPU_INDEX])
    return calls


def test_the_index_of_cpu_builds_is_used_where_it_answers(script: ModuleType) -> None:
    (call,) = installed(script, reachable=True)
    assert call[call.index("--index-url") + 1] == script.CPU_INDEX == doctor.TORCH_CPU_INDEX
    assert call[-1] in (ROOT / "constraints.txt").read_text().splitlines()


def test_elsewhere_the_plain_pin_is_installed(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = [["install", "--quiet", script.pinned((ROOT / "constraints.txt").read_text())]]
    assert installed(script, reachable=False) == plain
    assert installed(script, reachable=True, failing="--no-deps")[1:] == plain  # no build for this Python
    monkeypatch.setattr(script, "wants_cpu_build", lambda: False)
    assert installed(script, reachable=True) == plain


@pytest.mark.parametrize(
    ("platform", "driver", "wanted"), [("linux", None, True), ("linux", "/usr/bin/nvidia-smi", False)]
)
def test_a_machine_with_a_gpu_keeps_cuda(
    monkeypatch: pytest.MonkeyPatch, platform: str, driver: str | None, wanted: bool
) -> None:
    script = load_script("install_torch")
    monkeypatch.setattr(script.shutil, "which", lambda _: driver)
    assert script.wants_cpu_build(platform) is wanted
    assert not script.wants_cpu_build("darwin")  # the package index has no CUDA for these
    assert not script.wants_cpu_build("win32")


class _Index(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/whl/cpu/torch/" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def index() -> Iterator[str]:
    """The address of an index on this machine."""
    with HTTPServer(("127.0.0.1", 0), _Index) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_an_index_is_asked_whether_it_answers(script: ModuleType, index: str) -> None:
    assert script.answers(f"{index}/whl/cpu", patience=30)
    assert not script.answers(f"{index}/other", patience=30)
    assert not script.answers("http://127.0.0.1:1", patience=30)


def test_a_silent_index_is_not_waited_for(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert not script.answers(f"http://127.0.0.1:{silent.getsockname()[1]}", patience=0.2)
    forever = threading.Event()  # a name server that drops the question

    def never(*_: object, **__: object) -> None:
        forever.wait()
        raise OSError

    monkeypatch.setattr(script.urllib.request, "urlopen", never)
    assert not script.answers("http://index.invalid", patience=0.1)
    forever.set()


def test_a_missing_pin_is_said(script: ModuleType) -> None:
    with pytest.raises(SystemExit, match="torch==VERSION"):
        script.pinned("numpy==2.4.6\ntorchmetrics==1.0\n")
