"""`aanet serve`: what it prints, logs and opens; what is wrong is one sentence."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from aanet.cli import main as entry

pytest.importorskip("uvicorn", reason="the extra web is not installed")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--log-level", "loud"], "--log-level is debug, info, warning, error; got 'loud'."),
        (["--allowed-host", "http://a.example"], "'http://a.example' is not a host name"),
        (["--allow-origin", "a.example"], "'a.example' is not an origin"),
        (["--allow-origin", "*"], "only if it has a token."),
        (["--root-path", "stereo"], "'stereo' is not the path of a server"),
        (["--host", "0.0.0.0"], "--host 0.0.0.0 accepts requests from other machines and"),
        (["--model", "nothing.onnx"], "nothing.onnx"),
    ],
)
def test_an_error_is_one_sentence_and_exit_code_2(
    arguments: list[str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("AANET_TOKEN", raising=False)
    monkeypatch.setattr("sys.argv", ["aanet", "serve", *arguments, "--port", "0"])
    with pytest.raises(SystemExit) as stop:
        entry.main()
    captured = capsys.readouterr()
    assert stop.value.code == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert sentence in captured.err


@pytest.mark.slow
def test_on_a_terminal_it_waits_visibly_opens_the_browser_and_logs_requests(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty", reason="there are no pseudoterminals on Windows")
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    terminal, stderr = pty.openpty()
    options = ("--port", "0", "--model", "sgbm", "--allowed-host", "a.example", "--root-path", "/stereo")
    process = subprocess.Popen(
        [sys.executable, "-m", "aanet", "serve", "--open", *options],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env={**os.environ, "BROWSER": f"{browser} %s", "TERM": "xterm", "AANET_TOKEN": ""},
    )
    os.close(stderr)
    assert process.stdout is not None
    url = process.stdout.readline().removeprefix("Web page: ").strip()
    assert process.stdout.readline().startswith(f"HTTP API: {url}api/v1/, described at {url}docs")
    for _ in range(400):
        if opened.exists():
            break
        time.sleep(0.05)
    assert opened.read_text().strip() == url
    for path in ("readyz", "api/v1/models"):
        assert httpx.get(url + path, timeout=60, trust_env=False).status_code == 200
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) in (0, -signal.SIGTERM)
    process.stdout.close()
    shown = read_all(terminal)
    assert "Opening the default model" in shown
    assert "There is no --token" in shown
    logged = re.findall(r"^\d{4}-\d\d-\d\d \S+ INFO aanet\.web\.requests: (.*?)\r?$", shown, re.MULTILINE)
    assert len(logged) == 1  # a probe that succeeds is not worth a line
    assert re.fullmatch(r"GET /stereo/api/v1/models 200 \d+\.\d ms \d+ bytes", logged[0])


def read_all(terminal: int) -> str:
    """What was written to a terminal that nobody writes to any more."""
    parts = []
    try:
        while part := os.read(terminal, 65536):
            parts.append(part)
    except OSError:  # how Linux says that it ends
        pass
    os.close(terminal)
    return b"".join(parts).decode()
