"""Schemathesis against the OpenAPI document: what it promises holds for whatever it allows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from helpers.server import Server

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
)


@pytest.mark.slow
def test_the_document_is_kept(server: Server, tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("schemathesis")
    if not command.is_file():
        pytest.skip("schemathesis is not installed (extra dev)")
    done = subprocess.run(
        [
            str(command),
            "run",
            f"{server.api}/openapi.json",
            f"--checks={','.join(CHECKS)}",
            "--phases=examples,coverage,fuzzing",
            "--max-examples=10",
            "--seed=1",
            "--generation-database=none",
            "--no-color",
        ],
        capture_output=True,
        text=True,
        timeout=150,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
