"""The log: one line for each request, without secrets, whatever a client sends."""

from __future__ import annotations

import logging
import re
from dataclasses import replace

import pytest
from fastapi import FastAPI

from aanet.web.app import create_app
from aanet.web.request_log import log_refusal
from helpers.asgi import IN_PROCESS, ask, post

LOGGER = "aanet.web.requests"
LINE = re.compile(r"(\S+) (\S+) (\d+|-) (\d+\.\d) ms (\d+) bytes(?: id=(\S+))?")


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return create_app(replace(IN_PROCESS, root_path="/stereo"))


@pytest.fixture(autouse=True)
def _everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, LOGGER)


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, tuple[str | None, ...]]]:
    """Level and fields of every line; each must have the form."""
    found = []
    for record in caplog.records:
        if record.name == LOGGER:
            fields = LINE.fullmatch(record.getMessage())
            assert fields, record.getMessage()
            found.append((record.levelno, fields.groups()))
    return found


def test_a_request_is_one_line(
    app: FastAPI, tiny_pair: dict[str, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    response = post(app, tiny_pair, headers={"X-Request-ID": "3f-2a.b:1"})
    ((level, fields),) = lines(caplog)
    assert level == logging.INFO
    assert fields[:3] == ("POST", "/stereo/api/v1/disparity", "200")
    assert float(fields[3] or 0) > 0
    assert (int(fields[4] or 0), fields[5]) == (len(response.content), "3f-2a.b:1")


def test_refusals_and_failures_are_lines_too(
    app: FastAPI, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(app, "GET", "/healthz", headers={"Host": "evil.example"})
    ask(app, "GET", "/nothing")
    ask(app, "HEAD", "/api/v1/models")
    monkeypatch.setattr(app.state.service.metrics, "text", lambda: 1 // 0)
    ask(app, "GET", "/metrics")
    assert [fields[:3] for _, fields in lines(caplog)] == [
        ("GET", "/stereo/healthz", "400"),
        ("GET", "/stereo/nothing", "404"),
        ("HEAD", "/stereo/api/v1/models", "200"),
        ("GET", "/stereo/metrics", "500"),
    ]
    assert lines(caplog)[2][1][4] == "0"  # a HEAD has no body
    assert {level for level, _ in lines(caplog)} == {logging.INFO}


@pytest.mark.parametrize("path", ["/healthz", "/stereo/api/v1/readyz", "/static/icon.svg"])
def test_what_is_asked_all_the_time_is_debug(
    app: FastAPI, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    ask(app, "GET", path)
    assert [level for level, _ in lines(caplog)] == [logging.DEBUG]


def test_no_query_and_no_token_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    app = create_app(replace(IN_PROCESS, token="t0ken"))
    header = {"Authorization": "Bearer t0ken", "Cookie": "session=c00kie"}
    assert ask(app, "GET", "/api/v1/models", headers=header).status_code == 200
    ask(app, "GET", "/api/v1/models?token=qu3ry", headers={"X-Request-ID": "a b"})
    ask(app, "GET", "http://me:passw0rd@127.0.0.1/api/v1/models?token=qu3ry")
    assert len(lines(caplog)) == 3
    for secret in ("t0ken", "c00kie", "qu3ry", "passw0rd", "a b"):
        assert secret not in caplog.text


@pytest.mark.parametrize(
    "path", ["/x%0AINFO%20aanet:%20GET%20/%20200", "/x%1b[31m", "/x%00%7f", "/%E2%80%A8x", "/" + "%41" * 5000]
)
def test_a_path_cannot_forge_a_line(app: FastAPI, caplog: pytest.LogCaptureFixture, path: str) -> None:
    ask(app, "GET", path)
    ((_, fields),) = lines(caplog)
    message = caplog.records[-1].getMessage()
    assert message.isascii()
    assert message.isprintable()
    assert len(message) < 300
    assert fields[2] == "404"


def test_an_unexpected_error_does_not_let_a_path_forge_a_line(
    app: FastAPI, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aanet.web.limits.Gate._respond_early", lambda *_: 1 // 0)
    ask(app, "GET", "/x%0Ay")
    (failure,) = (record.getMessage() for record in caplog.records if record.name == "aanet.web")
    assert failure == "GET /stereo/x%0Ay failed"


def test_what_is_not_http_is_a_line(caplog: pytest.LogCaptureFixture) -> None:
    log_refusal(400, 12)
    assert lines(caplog) == [(logging.INFO, ("-", "-", "400", "0.0", "12", None))]
