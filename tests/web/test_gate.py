"""What holds for every request and every response: origin, host, headers, form of errors, metrics."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from aanet.engines import bf16_support
from aanet.engines.bf16_support import Bf16Support
from aanet.engines.openvino import precision
from aanet.models.weights import checkpoint
from aanet.web.app import create_app
from aanet.web.matching import Matched, Matchers
from aanet.web.service import Service
from aanet.web.uploads import MAX_SIDE
from helpers.asgi import IN_PROCESS, ask, post
from helpers.matching_network import matching_network

DISPARITY = "/api/v1/disparity"


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return create_app(IN_PROCESS)


def assert_problem(response: httpx.Response, status: int, code: str) -> None:
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    assert set(response.json()) == {"code", "message"}
    for name in ("content-security-policy", "x-content-type-options", "cross-origin-resource-policy"):
        assert name in response.headers
    assert response.headers["cache-control"] == "no-store"


def counted(app: FastAPI, method: str, status: int) -> float:
    text = ask(app, "GET", "/metrics").text
    found = re.search(rf'aanet_responses_total{{method="{method}",status="{status}"}} (\S+)', text)
    return float(found[1]) if found else 0.0


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1"},
    ],
)
def test_the_pages_of_other_sites_cannot_send_forms(app: FastAPI, headers: dict[str, str]) -> None:
    before = counted(app, "POST", 403)
    assert_problem(post(app, {}, headers=headers), 403, "foreign_origin")
    assert counted(app, "POST", 403) == before + 1
    assert ask(app, "GET", "/api/v1/models", headers=headers).status_code == 200  # a link to the page works


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://127.0.0.1"}, {"Sec-Fetch-Site": "same-origin", "Origin": "https://a.example"}],
)
def test_the_page_itself_can(app: FastAPI, tiny_pair: dict[str, bytes], headers: dict[str, str]) -> None:
    assert post(app, tiny_pair, headers=headers).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "[", ""])
def test_another_host_is_refused_as_json(app: FastAPI, host: str) -> None:
    assert_problem(ask(app, "GET", "/healthz", headers={"Host": host}), 400, "wrong_host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "[::1]:8000", "127.0.0.1:1"])
def test_the_names_of_this_machine_are_accepted(app: FastAPI, host: str) -> None:
    assert ask(app, "GET", "/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    ("client", "status"), [("127.0.0.1", 200), ("::1", 200), ("192.0.2.1", 403), ("testclient", 403)]
)
def test_without_a_token_a_cluster_serves_its_own_machine_only(client: str, status: int) -> None:
    app = create_app(replace(IN_PROCESS, local_clients=True))
    response = ask(app, "GET", "/api/v1/models", client=(client, 5000))
    assert response.status_code == status
    if status == 403:
        assert_problem(response, 403, "foreign_client")


def test_an_unexpected_error_has_the_same_form_and_is_counted(
    app: FastAPI, tiny_pair: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("aanet.outputs.encode", broken)
    before = counted(app, "POST", 500)
    assert_problem(post(app, tiny_pair), 500, "internal")
    assert counted(app, "POST", 500) == before + 1


@pytest.mark.parametrize(
    "text", [b'{"format":"aanet-stereo-camera","\\ud800":1}', b"[]", b'{"format": 1', b'{"a":"\xff"}']
)
def test_json_that_is_no_camera_is_422_and_counted(
    app: FastAPI, tiny_pair: dict[str, bytes], text: bytes
) -> None:
    before = counted(app, "POST", 422)
    assert_problem(post(app, {**tiny_pair, "calib": text}), 422, "wrong_calibration")
    assert counted(app, "POST", 422) == before + 1


@pytest.mark.parametrize("path", ["/", "/healthz", "/api/v1/models", "/static/icon.svg"])
def test_head_is_answered(app: FastAPI, path: str) -> None:
    assert ask(app, "HEAD", path).status_code == 200


@pytest.mark.parametrize(
    ("size", "query"), [((MAX_SIDE + 1, 1), {}), ((1, MAX_SIDE + 1), {}), ((MAX_SIDE, 8), {"scale": 2})]
)
def test_each_side_is_bounded(app: FastAPI, size: tuple[int, int], query: dict[str, float]) -> None:
    image = b"P5 %d %d 255\n" % size + bytes(size[0] * size[1])
    assert_problem(post(app, {"left": image, "right": image}, params=query), 413, "too_many_pixels")


def test_memory_is_estimated_before_matching(
    app: FastAPI, tiny_pair: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    served: Service = app.state.service
    matchers = served.catalog.default.matching
    assert isinstance(matchers, Matchers)
    monkeypatch.setattr(matchers._open[None].engine, "available_memory", lambda: 100_000)
    assert_problem(post(app, tiny_pair), 413, "too_much_memory")


def test_retry_after_fits_the_time_of_a_turn(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    served: Service = app.state.service
    model = served.catalog.default
    monkeypatch.setattr(model, "_seconds_per_turn", None)
    monkeypatch.setattr(model.worker, "_slots", set(range(5)))
    model._update_speed(Matched(b"", "", "", {}, 0.2, 2000, ()), 0.4)  # 100 seconds per megapixel
    assert model.retry_after == 2
    monkeypatch.setattr(model.worker, "at_once", 4)
    assert model.retry_after == 1


def test_a_full_matcher_refuses_before_anything_else_is_done(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: Service = app.state.service
    monkeypatch.setattr(served.catalog.default.worker, "_slots", set(range(9)))
    response = post(app, {}, params={"scale": "nan", "model": "sgbm"})
    assert_problem(response, 503, "full")
    assert int(response.headers["Retry-After"]) >= 1
    assert_problem(post(app, {}, params={"model": "other"}), 422, "unknown_model")


def test_names_are_not_told_without_the_token() -> None:
    app = create_app(replace(IN_PROCESS, token="secret"))
    response = post(app, {}, params={"model": "other"})
    assert_problem(response, 401, "unauthorized")
    assert "sgbm" not in response.text


def test_tokens_are_utf8_and_wrong_ones_are_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(replace(IN_PROCESS, token="geheim€"))
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("aanet.web.api.asyncio.sleep", wait)

    def status(token: str) -> int:
        headers = {b"Authorization": b"Bearer " + token.encode()}
        return ask(app, "GET", "/api/v1/models", headers=headers).status_code

    assert status("geheim€") == 200
    assert waits == []
    assert status("geheim") == 401
    assert len(waits) == 1


def test_a_model_opened_by_a_request_does_not_try_bf16_where_the_probe_failed(
    tiny_pair: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = {"openvino": Bf16Support(False, "the probe was killed"), "torch": Bf16Support(False, "it was")}
    monkeypatch.setattr(bf16_support, "_results", broken)
    monkeypatch.setattr(precision, "choose_precision", lambda *_: pytest.fail("bf16 was tried"))
    monkeypatch.setenv("AANET_CACHE", str(tmp_path / "cache"))
    checkpoint.save(matching_network(24), tmp_path / "mine.safetensors")
    app = create_app(replace(IN_PROCESS, models=("sgbm", str(tmp_path / "mine.safetensors"))))
    response = post(app, tiny_pair, params={"model": "mine"})
    assert response.status_code == 200, response.text
    assert "float32" in response.headers["Aanet-Engine"]


def test_uploads_leave_no_temporary_files(
    app: FastAPI, whole_pair: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("SpooledTemporaryFile", "TemporaryFile", "NamedTemporaryFile", "mkstemp", "mkdtemp"):
        monkeypatch.setattr(f"tempfile.{name}", full)
    large = {**whole_pair, "left": whole_pair["left"] + bytes(1_500_000)}
    assert post(app, large, params={"scale": 0.2}).status_code == 200
