"""The OpenAPI document, the API page that is made from it, and its examples."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from fastapi import FastAPI

from aanet.io.disparity import read_disparity
from aanet.web.app import create_app
from aanet.web.examples import BASE, LANGUAGES, Call, call_of
from aanet.web.live import LiveSession
from aanet.web.openapi import document
from aanet.web.page import STATIC
from aanet.web.prose import prose
from aanet.web.reference import operations, page
from helpers.asgi import IN_PROCESS, ask
from helpers.server import Server, start_server

TOKEN = "s3cret"
NAMES = {
    "matchPair": "POST /api/v1/disparity",
    "listModels": "GET /api/v1/models",
    "getMetrics": "GET /api/v1/metrics",
    "getHealth": "GET /api/v1/healthz",
    "getReadiness": "GET /api/v1/readyz",
}
VOID = {"meta", "link", "img", "br", "input"}


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return create_app(IN_PROCESS)


@pytest.fixture(scope="module")
def described(app: FastAPI) -> dict[str, Any]:
    return document(app)


class Outline(HTMLParser):
    """Ids, links and files of a page; fails if a tag is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.files: list[str] = []
        self.inline: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids += [given["id"]] if "id" in given else []
        if tag == "a":
            self.links.append(given["href"])
        self.files += [given[name] for name in ("src", "href") if name in given and tag != "a"]
        self.inline += [name for name in given if name == "style" or name.startswith("on")]
        self.inline += [tag] if tag == "style" or (tag == "script" and "src" not in given) else []
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def test_operations_have_names_and_groups(app: FastAPI, described: dict[str, Any]) -> None:
    found = {each["operationId"]: f"{method.upper()} {path}" for method, path, each in operations(described)}
    assert found == NAMES
    assert ask(app, "GET", "/api/v1").json()["operations"] == NAMES
    groups = [each["name"] for each in described["tags"]]
    assert {tag for *_, each in operations(described) for tag in each["tags"]} == set(groups)
    assert [each["url"] for each in described["servers"]] == ["/"]


def test_no_parameter_may_be_null(described: dict[str, Any]) -> None:
    schemas = {
        each["name"]: each["schema"] for each in described["paths"]["/api/v1/disparity"]["post"]["parameters"]
    }
    assert schemas["max_disparity"]["type"] == "integer"
    assert schemas["max_disparity"]["maximum"] == 1024
    assert schemas["unit"]["enum"] == ["mm", "cm", "m"]
    assert "null" not in str(schemas)


def test_the_token_is_described_whether_or_not_there_is_one(described: dict[str, Any]) -> None:
    with_token = document(create_app(replace(IN_PROCESS, token=TOKEN)))
    for each in (described, with_token):
        assert each["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    needed = {each["operationId"] for *_, each in operations(with_token) if each.get("security")}
    assert needed == {"matchPair", "listModels", "getMetrics"}
    assert not any(each.get("security") for *_, each in operations(described))


def test_the_page_has_everything_and_needs_nothing_from_elsewhere(
    app: FastAPI, described: dict[str, Any]
) -> None:
    response = ask(app, "GET", "/docs")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src 'self'" in response.headers["content-security-policy"]
    outline = Outline(response.text)
    assert set(NAMES) | {f"schema-{name}" for name in described["components"]["schemas"]} <= set(outline.ids)
    assert len(outline.ids) == len(set(outline.ids))
    assert outline.inline == []  # which the content security policy would refuse
    for file in outline.files:
        assert (STATIC / file.removeprefix("static/")).is_file(), file  # relative: a proxy may add a prefix
    for link in outline.links:
        assert link.removeprefix("#") in outline.ids or ask(app, "GET", f"/{link}").status_code == 200, link
    for parameter in next(operations(described))[2]["parameters"]:
        assert f"<code>{parameter['name']}</code>" in response.text


def test_a_live_server_has_its_operations_too() -> None:
    described = document(create_app(IN_PROCESS, live=cast(LiveSession, object())))
    names = {each["operationId"] for *_, each in operations(described)}
    assert names == {*NAMES, "getLiveStatus", "controlLive", "getLiveResult"}
    text = page(described)
    assert names <= set(Outline(text).ids)
    assert f"curl -X POST \\\n    &quot;{BASE}/api/v1/live?paused=false&amp;recording=false&quot;" in text
    assert f"&quot;{BASE}/api/v1/live/result?format=depth.npy&quot;" in text


def test_the_index_leads_browsers_to_the_page(app: FastAPI) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for path, target in (("/api/v1/", "../../docs"), ("/api/v1", "../docs")):
        response = ask(app, "GET", path, headers=browser)
        assert (response.status_code, response.headers["Location"]) == (307, target)
        assert response.headers["Vary"] == "Accept"


def test_text_of_the_document_cannot_become_html(described: dict[str, Any]) -> None:
    evil = "<script>alert(1)</script>"
    info = {**described["info"], "description": f"{evil}\n\n    {evil}\n\n- {evil}", "version": evil}
    assert "<script>" not in page({**described, "info": info})


def test_descriptions_have_paragraphs_lists_and_code() -> None:
    text = "One `a<b`\nline.\n\n    code  kept\n\n- first\n- second\n  goes on"
    assert prose(text) == (
        "<p>One <code>a&lt;b</code> line.</p><pre><code>code  kept</code></pre>"
        "<ul><li>first</li><li>second goes on</li></ul>"
    )


def example(settings_token: str | None, operation: str) -> Call:
    made = document(create_app(replace(IN_PROCESS, token=settings_token)))
    return next(
        call_of(method, path, each)
        for method, path, each in operations(made)
        if each["operationId"] == operation
    )


@pytest.mark.parametrize("operation", NAMES)
@pytest.mark.parametrize("token", [None, TOKEN])
def test_every_example_names_the_token_if_there_is_one(operation: str, token: str | None) -> None:
    call = example(token, operation)
    needed = token is not None and operation in ("matchPair", "listModels", "getMetrics")
    for language, write in LANGUAGES.items():
        text = write(call)
        assert ("Bearer" in text) is needed, language
        assert BASE + NAMES[operation].split()[1] in text
    compile(LANGUAGES["Python"](call), "example", "exec")


@pytest.fixture(scope="module")
def with_token() -> Iterator[Server]:
    server = start_server("--model", "sgbm", "--token", TOKEN)
    yield server
    server.stop()


@pytest.mark.slow
@pytest.mark.parametrize("language", ["curl", "Python"])
def test_examples_work_as_printed(
    with_token: Server, small_pair: dict[str, bytes], tmp_path: Path, language: str
) -> None:
    if language == "curl" and shutil.which("curl") is None:
        pytest.skip("there is no curl on this machine")
    for side in ("left", "right"):
        (tmp_path / f"{side}.png").write_bytes(small_pair[side])
    outputs = {}
    for operation in NAMES:
        text = LANGUAGES[language](example(TOKEN, operation)).replace(BASE, with_token.url.rstrip("/"))
        command = [sys.executable, "-c", text] if language == "Python" else ["sh", "-c", text]
        environment = {**os.environ, "AANET_TOKEN": TOKEN, "NO_PROXY": "127.0.0.1"}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, (text, done.stderr)
        outputs[operation] = done.stdout
    assert np.median(read_disparity(tmp_path / "disparity.pfm")) > 5
    assert "sgbm" in outputs["listModels"]
    assert "aanet_responses_total" in outputs["getMetrics"]
    assert re.search(r"['\"]ok['\"]", outputs["getHealth"])
