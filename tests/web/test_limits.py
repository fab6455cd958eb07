"""Everything that is wrong with a request is one plain sentence, and costs the server nothing."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable

import httpx
import pytest

from aanet.cli.serve import serve
from aanet.errors import AanetError, UnsupportedError
from aanet.io.images import AnyImage, decode_image, encode_image
from aanet.web.matching import affordable_scale
from aanet.web.models import Catalog
from aanet.web.settings import Settings
from helpers.hostile import CALIBRATIONS, NOT_IMAGES
from helpers.server import Server


def assert_refused(response: httpx.Response, status: int, code: str) -> str:
    assert response.status_code == status, response.text
    problem = response.json()
    assert set(problem) == {"code", "message"}
    assert problem["code"] == code
    message: str = problem["message"]
    assert message.endswith(".")
    assert not re.search(r"Traceback|File \"|/tmp|/usr|/home|\.py\b|site-packages", response.text), message
    return message


@pytest.mark.parametrize("kind", NOT_IMAGES)
def test_the_content_decides_what_is_an_image(
    server: Server, small_pair: dict[str, bytes], kind: str
) -> None:
    response = server.match({**small_pair, "right": NOT_IMAGES[kind]})
    assert "right file" in assert_refused(response, 415, "not_an_image")


def test_pixels_are_counted_before_decoding(
    server: Server, small_pair: dict[str, bytes], bomb: bytes
) -> None:
    message = assert_refused(server.match({**small_pair, "left": bomb}), 413, "too_many_pixels")
    assert "8 megapixels" in message


def test_a_scale_is_not_a_way_around_the_limit(server: Server, whole_pair: dict[str, bytes]) -> None:
    pixels = 741 * 500
    large = {side: encode_image(_doubled(whole_pair[side]), ".jpg") for side in ("left", "right")}
    message = assert_refused(server.match(large, scale=4), 413, "too_many_pixels")
    assert f"{pixels * 4 * 16 / 1e6:.1f} megapixels" in message


@pytest.mark.parametrize(
    ("pixels", "scale"), [(1_000_000, 1.5), (4_000_000, 2**0.5), (8_000_000, 1.0), (9_000_000, 1.0)]
)
def test_what_suits_a_matcher_is_not_one_either(pixels: int, scale: float) -> None:
    assert affordable_scale(1.5, pixels, 8_000_000) == pytest.approx(scale)


def _doubled(data: bytes) -> AnyImage:
    image = decode_image(data, "image")
    return image.repeat(2, axis=0).repeat(2, axis=1)


def test_damage_and_different_sizes_are_named(
    server: Server, small_pair: dict[str, bytes], whole_pair: dict[str, bytes]
) -> None:
    cut = small_pair["left"][: len(small_pair["left"]) // 2]
    assert "left image" in assert_refused(server.match({**small_pair, "left": cut}), 422, "damaged_image")
    message = assert_refused(
        server.match({"left": small_pair["left"], "right": whole_pair["right"]}), 422, "different_sizes"
    )
    assert "200×120" in message
    assert "741×500" in message


@pytest.mark.parametrize("kind", CALIBRATIONS)
def test_a_wrong_calibration_is_one_sentence(server: Server, small_pair: dict[str, bytes], kind: str) -> None:
    response = server.match({**small_pair, "calib": CALIBRATIONS[kind]})
    assert "calibration" in assert_refused(response, 422, "wrong_calibration").lower()


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"model": "../../etc/passwd"}, "unknown_model"),
        ({"model": "/tmp/weights.safetensors"}, "unknown_model"),
        ({"format": "exe"}, "wrong_parameter"),
        ({"scale": "nan"}, "wrong_parameter"),
        ({"scale": 0}, "wrong_parameter"),
        ({"scale": 0.001}, "wrong_parameter"),
        ({"max_disparity": 10**9}, "wrong_parameter"),
        ({"check": "perhaps"}, "wrong_parameter"),
        ({"format": "occlusion"}, "needs_check"),
        ({"sacle": 2}, "unknown_parameter"),
    ],
)
def test_wrong_parameters(
    server: Server, small_pair: dict[str, bytes], query: dict[str, object], code: str
) -> None:
    assert_refused(server.match(small_pair, **query), 422, code)


def test_a_misspelled_parameter_is_answered_with_the_closest_one(
    server: Server, small_pair: dict[str, bytes]
) -> None:
    response = server.match(small_pair, sacle=2)
    assert "did you mean 'scale'" in assert_refused(response, 422, "unknown_parameter")
    assert_refused(server.get("/api/v1/models?x=1"), 422, "unknown_parameter")


def test_a_server_is_not_started_with_a_model_that_has_no_weights() -> None:
    with pytest.raises(UnsupportedError, match=r"PSMNet .* a weight file, .* sgbm or cross-scale"):
        Catalog(Settings(models=("sgbm", "psmnet")))


def test_what_needs_meters_needs_a_calibration(server: Server, small_pair: dict[str, bytes]) -> None:
    pair = {side: small_pair[side] for side in ("left", "right")}
    for wanted in ("ply", "depth", "depth_color", "camera"):
        assert_refused(server.match(pair, format=wanted), 422, "needs_calibration")


def test_wrong_forms(server: Server, small_pair: dict[str, bytes]) -> None:
    url = f"{server.api}/disparity"
    assert_refused(server.match({"left": small_pair["left"]}), 422, "missing_image")
    assert_refused(server.match({**small_pair, "mask": b"1"}), 422, "unknown_part")
    assert_refused(httpx.post(url, json={"left": "/etc/passwd"}, trust_env=False), 415, "not_multipart")
    right = ("right", ("r.png", small_pair["right"]))
    text = [("left", (None, "/etc/passwd")), right]
    assert "left" in assert_refused(httpx.post(url, files=text, trust_env=False), 422, "not_a_file")
    twice = [right, right]
    assert "right" in assert_refused(httpx.post(url, files=twice, trust_env=False), 422, "repeated_part")
    cut = b'--b\r\nContent-Disposition: form-data; name="left"; filename="l"\r\n\r\n'
    form = {"Content-Type": "multipart/form-data; boundary=b"}
    assert_refused(httpx.post(url, content=cut, headers=form, trust_env=False), 400, "damaged_form")
    headers = {"Content-Type": "multipart/form-data"}
    assert_refused(httpx.post(url, content=b"??", headers=headers, trust_env=False), 400, "damaged_form")
    assert_refused(httpx.put(url, trust_env=False), 405, "method_not_allowed")
    assert_refused(server.get("/api/v1/nothing"), 404, "not_found")


@pytest.mark.parametrize(
    "path", ["/static/../settings.py", "/static/%2e%2e/settings.py", "/static//etc/passwd"]
)
def test_no_path_of_a_client_reaches_the_file_system(server: Server, path: str) -> None:
    host, port = server.url.removeprefix("http://").rstrip("/").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as raw:  # httpx would tidy the path up
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        response = b"".join(iter(lambda: raw.recv(65536), b""))
    assert response.startswith(b"HTTP/1.1 404")
    assert b"dataclass" not in response


def test_uploads_are_limited_whether_or_not_they_announce_their_size(
    start_either: Callable[..., Server], small_pair: dict[str, bytes]
) -> None:
    server = start_either("--model", "sgbm", "--max-upload-mb", "0.2", "--max-pixels", "30000")
    large = {**small_pair, "left": bytes(400_000)}
    assert "0.2 MB" in assert_refused(server.match(large), 413, "too_large")
    chunks = (bytes(50_000) for _ in range(8))  # sent in chunks: no Content-Length
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    response = httpx.post(f"{server.api}/disparity", content=chunks, headers=headers, trust_env=False)
    assert response.status_code in (400, 413)
    form = b'--b\r\nContent-Disposition: form-data; name="left"; filename="l"\r\n\r\n'
    honest = (form, *(bytes(50_000) for _ in range(8)))
    response = httpx.post(f"{server.api}/disparity", content=iter(honest), headers=headers, trust_env=False)
    assert_refused(response, 413, "too_large")
    assert server.match(small_pair).status_code == 200


def test_a_token_is_asked_for_and_checked(
    start_either: Callable[..., Server], small_pair: dict[str, bytes]
) -> None:
    server = start_either("--model", "sgbm", "--token", "s3cret")
    message = assert_refused(server.match(small_pair), 401, "unauthorized")
    assert "s3cret" not in message
    for wrong in ("Bearer s3cre", "Bearer", "Basic s3cret"):
        assert_refused(server.get("/api/v1/models", headers={"Authorization": wrong}), 401, "unauthorized")
        assert_refused(server.get("/metrics", headers={"Authorization": wrong}), 401, "unauthorized")
    allowed = {"Authorization": "Bearer s3cret"}
    assert server.get("/api/v1/models", headers=allowed).status_code == 200
    assert server.get("/healthz").status_code == 200
    assert "security" in server.get("/api/v1/openapi.json").json()["paths"]["/api/v1/models"]["get"]


def test_another_name_for_this_machine_is_refused(server: Server) -> None:
    assert_refused(server.get("/api/v1/models", headers={"Host": "evil.example"}), 400, "wrong_host")


def test_other_machines_are_let_in_only_with_a_token() -> None:
    with pytest.raises(AanetError, match="--token"):
        serve(host="0.0.0.0")


def test_a_taken_port_is_one_sentence(server: Server) -> None:
    port = int(server.url.rstrip("/").split(":")[-1])
    with pytest.raises(AanetError, match="Cannot listen"):
        serve(port=port, model=["sgbm"])
