"""Host names, the pages of other sites, and the prefix of a proxy, as the settings allow them."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest
from fastapi import FastAPI

from aanet.errors import InputError
from aanet.web.app import create_app
from aanet.web.settings import Settings
from helpers.asgi import IN_PROCESS, ask, post

OPENED = replace(
    IN_PROCESS,
    allowed_hosts=("Stereo.Example.com", "*.internal", "[2001:db8::1]"),
    allow_origins=("https://App.example.com/", "http://localhost:3000", "https://b.example:443"),
    root_path="/lab/stereo/",
)
APP = "https://app.example.com"
READ = {"Access-Control-Request-Method": "GET"}


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return create_app(OPENED)


def code_of(response: httpx.Response) -> str:
    assert set(response.json()) == {"code", "message"}
    return str(response.json()["code"])


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("stereo.example.com", 200),
        ("STEREO.example.com:8443", 200),
        ("a.internal", 200),
        ("a.b.internal:80", 200),
        ("[2001:db8::1]:8000", 200),
        ("127.0.0.1:8000", 200),
        ("internal", 400),
        ("evilinternal", 400),
        ("stereo.example.com.evil.example", 400),
        ("example.com", 400),
        ("", 400),
    ],
)
def test_allowed_hosts_are_accepted_and_others_refused_as_json(app: FastAPI, host: str, status: int) -> None:
    response = ask(app, "GET", "/healthz", headers={"Host": host})
    assert response.status_code == status
    if status == 400:
        assert code_of(response) == "wrong_host"


def test_a_server_for_other_machines_checks_hosts_only_if_some_are_named() -> None:
    public = replace(IN_PROCESS, local=False, token="s3cret")
    for settings, status in ((public, 200), (replace(public, allowed_hosts=("a.example",)), 400)):
        assert ask(settings, "GET", "/healthz", headers={"Host": "b.example"}).status_code == status


@pytest.mark.parametrize("origin", [APP, "http://localhost:3000", "https://b.example"])
def test_pages_of_an_allowed_origin_may_match_and_read_the_headers(
    app: FastAPI, tiny_pair: dict[str, bytes], origin: str
) -> None:
    response = post(app, tiny_pair, headers={"Origin": origin, "Sec-Fetch-Site": "cross-site"})
    assert response.status_code == 200
    assert response.headers["Access-Control-Allow-Origin"] == origin
    exposed = response.headers["Access-Control-Expose-Headers"].split(", ")
    assert {"Aanet-Warnings", "Aanet-Camera", "Server-Timing", "Retry-After"} <= set(exposed)
    assert response.headers["Vary"] == "Origin"
    assert "Access-Control-Allow-Credentials" not in response.headers


def test_errors_can_be_read_by_such_a_page_too(app: FastAPI) -> None:
    response = post(app, {}, params={"model": "other"}, headers={"Origin": APP})
    assert (response.status_code, code_of(response)) == (422, "unknown_model")
    assert response.headers["Access-Control-Allow-Origin"] == APP


@pytest.mark.parametrize("origin", ["https://evil.example", "http://app.example.com", f"{APP}:444", "null"])
def test_pages_of_other_origins_may_not(app: FastAPI, origin: str) -> None:
    headers = {"Origin": origin, "Sec-Fetch-Site": "cross-site"}
    refused = [post(app, {}, headers=headers), ask(app, "OPTIONS", "/api/v1/models", headers=headers | READ)]
    for response in refused:
        assert (response.status_code, code_of(response)) == (403, "foreign_origin")
    for response in (*refused, ask(app, "GET", "/api/v1/models", headers=headers)):
        assert "Access-Control-Allow-Origin" not in response.headers
        assert response.headers["Vary"] == "Origin"


def test_a_preflight_is_answered_without_a_token() -> None:
    settings = replace(IN_PROCESS, allow_origins=("*",), token="s3cret")
    asked = {"Origin": "https://any.example", "Access-Control-Request-Method": "POST"}
    response = ask(settings, "OPTIONS", "/api/v1/disparity", headers=asked)
    assert (response.status_code, response.content) == (204, b"")
    assert response.headers["Access-Control-Allow-Origin"] == "https://any.example"
    assert "POST" in response.headers["Access-Control-Allow-Methods"]
    assert "Authorization" in response.headers["Access-Control-Allow-Headers"]
    assert response.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("headers", [{}, {"Origin": APP}])
def test_other_options_requests_are_not_preflights(app: FastAPI, headers: dict[str, str]) -> None:
    assert ask(app, "OPTIONS", "/api/v1/models", headers=headers).status_code == 405


def test_without_allowed_origins_there_are_no_cors_headers() -> None:
    response = ask(IN_PROCESS, "OPTIONS", "/api/v1/models", headers={"Origin": APP} | READ)
    assert response.status_code == 405
    assert "Vary" not in response.headers


@pytest.mark.parametrize("path", ["/", "/docs", "/healthz", "/api/v1/models", "/static/icon.svg"])
def test_a_proxy_may_remove_the_prefix_or_not(app: FastAPI, path: str) -> None:
    removed, kept = ask(app, "GET", path), ask(app, "GET", f"/lab/stereo{path}")
    assert (removed.status_code, kept.status_code) == (200, 200)
    assert removed.content == kept.content


def test_the_prefix_without_a_slash_leads_to_the_page(app: FastAPI) -> None:
    response = ask(app, "GET", "/lab/stereo")
    assert (response.status_code, response.headers["Location"]) == (307, "/lab/stereo/")
    assert ask(app, "GET", "/lab/stereophonic").status_code == 404


def test_the_prefix_stands_in_the_document(app: FastAPI) -> None:
    document = ask(app, "GET", "/api/v1/openapi.json").json()
    assert [each["url"] for each in document["servers"]] == ["/lab/stereo"]
    assert ask(app, "GET", "/api/v1/").json()["documentation"] == "/lab/stereo/docs"


def test_a_full_matcher_refuses_under_the_prefix_too(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app.state.service.catalog.default.worker, "_slots", set(range(9)))
    response = ask(app, "POST", "/lab/stereo/api/v1/disparity", params={"scale": "nan"})
    assert (response.status_code, code_of(response)) == (503, "full")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"allowed_hosts": ("https://a.example",)}, "'https://a.example' is not a host name"),
        ({"allowed_hosts": ("a.example:80",)}, "without scheme, port and path"),
        ({"allowed_hosts": ("*",)}, "'\\*' is not a host name"),
        ({"allowed_hosts": ("a.*.example",)}, "is not a host name"),
        ({"allow_origins": ("a.example",)}, "'a.example' is not an origin"),
        ({"allow_origins": ("https://a.example/page",)}, "is not an origin"),
        ({"allow_origins": ("https://*.example",)}, "is not an origin"),
        ({"allow_origins": ("https://me@a.example",)}, "is not an origin"),
        ({"allow_origins": ("http://a.example:x",)}, "is not an origin"),
        ({"allow_origins": ("null",)}, "is not an origin"),
        ({"allow_origins": ("*",)}, "only if it has a token"),
        ({"root_path": "stereo"}, "as in /stereo"),
        ({"root_path": "/a//b"}, "as in /stereo"),
        ({"root_path": "/a/../b"}, "as in /stereo"),
        ({"root_path": "/a b"}, "as in /stereo"),
        ({"root_path": "/api"}, "begins with one of the server's own"),
        ({"root_path": "/static/x"}, "choose another"),
    ],
)
def test_a_wrong_setting_is_one_sentence(wrong: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as refusal:
        Settings(**wrong)  # type: ignore[arg-type]
    assert "\n" not in str(refusal.value)
