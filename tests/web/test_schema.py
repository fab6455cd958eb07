"""Schemathesis against the OpenAPI document: what it promises holds for whatever it allows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers.server import LIVE_COMMAND, Server, start_server
from helpers.videos import flat_frames, write_video

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
)


TOKEN = "s3cret"


def run_schemathesis(server: Server, folder: Path, *options: str, checks: tuple[str, ...] = CHECKS) -> None:
    command = Path(sys.executable).with_name("schemathesis")
    if not command.is_file():
        pytest.skip("schemathesis is not installed (extra dev)")
    done = subprocess.run(
        [
            str(command),
            "run",
            f"{server.api}/openapi.json",
            f"--checks={','.join(checks)}",
            "--phases=examples,coverage,fuzzing",
            "--seed=1",
            "--generation-database=none",
            "--no-color",
            *options,
        ],
        capture_output=True,
        text=True,
        timeout=150,
        cwd=folder,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.slow
def test_the_document_is_kept(server: Server, tmp_path: Path) -> None:
    run_schemathesis(server, tmp_path, "--max-examples=10")


@pytest.mark.slow
@pytest.mark.extended
def test_the_document_is_kept_with_a_token(start: Callable[..., Server], tmp_path: Path) -> None:
    """What is allowed works with the token; the same requests without it, or with another, are refused."""
    server = start("--model", "sgbm", "--token", TOKEN)
    header = f"--header=Authorization: Bearer {TOKEN}"
    run_schemathesis(server, tmp_path, header, "--max-examples=5", checks=(*CHECKS, "ignored_auth"))


@pytest.mark.slow
@pytest.mark.extended
def test_the_document_is_kept_without_the_token(start: Callable[..., Server], tmp_path: Path) -> None:
    run_schemathesis(start("--model", "sgbm", "--token", TOKEN), tmp_path, "--max-examples=5")


@pytest.mark.slow
def test_the_document_of_a_live_server_is_kept(tmp_path: Path) -> None:
    video = write_video(tmp_path / "both.avi", flat_frames(5, 48, 128))
    live = start_server(str(video), "--model", "sgbm", "-o", str(tmp_path), command=LIVE_COMMAND)
    try:
        run_schemathesis(live, tmp_path, "--max-examples=10", "--include-path-regex=/live")
    finally:
        errors = live.stop()
    assert "Traceback" not in errors, errors
