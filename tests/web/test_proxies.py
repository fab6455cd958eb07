"""nginx and Caddy with the configurations of `deploy/`: TLS, a prefix, uploads and errors, through both."""

from __future__ import annotations

import json
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers.server import Server, as_form, start_server

pytestmark = pytest.mark.slow

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
NAME = "stereo.example.com"
TOKEN = "s3cret"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def replaced(text: str, changes: dict[str, str]) -> str:
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate that nobody but these tests trusts, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl on this machine")
    folder = tmp_path_factory.mktemp("tls")
    words = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-keyout", "key.pem", "-out", "certificate.pem", "-days", "2", "-subj", f"/CN={NAME}"]
    words += ["-addext", f"subjectAltName=DNS:{NAME}"]
    subprocess.run(words, check=True, capture_output=True, cwd=folder, timeout=60)
    return folder / "certificate.pem", folder / "key.pem"


@pytest.fixture(scope="module")
def forwarded() -> list[httpx.Response]:
    """The pairs that were matched through a proxy; there may be none in this process."""
    return []


@pytest.fixture(scope="module")
def backend(forwarded: list[httpx.Response]) -> Iterator[Server]:
    options = ("--allowed-host", NAME, "--root-path", "/stereo", "--token", TOKEN, "--log-level", "info")
    server = start_server("--model", "sgbm", *options)
    yield server
    errors = server.stop()
    assert "Traceback" not in errors
    matched = re.findall(r"INFO \S+ POST /stereo/api/v1/disparity 200 .* id=\S+\n", errors)
    assert len(matched) == len(forwarded), errors  # with the identifiers that the proxies have given


class Proxy:
    """A running proxy, asked under its public name."""

    def __init__(self, command: list[str], port: int, certificate: Path, environment: dict[str, str]) -> None:
        self._port = port
        self._trust = ssl.create_default_context(cafile=certificate)
        self._process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for _ in range(600):
            with socket.socket() as trying:
                if self._process.poll() is not None or trying.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        assert self._process.poll() is None, self._process.communicate()[0]

    def ask(
        self, method: str, path: str, headers: dict[str, str] | None = None, **options: Any
    ) -> httpx.Response:
        with httpx.Client(verify=self._trust, trust_env=False, timeout=120) as client:
            return client.request(
                method,
                f"https://127.0.0.1:{self._port}{path}",
                headers={"Host": f"{NAME}:{self._port}", **(headers or {})},
                extensions={"sni_hostname": NAME},
                **options,
            )

    @property
    def origin(self) -> str:
        return f"https://{NAME}:{self._port}"

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=60)


def start_nginx(backend: str, certificate: tuple[Path, Path], folder: Path) -> Proxy:
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/bin")
    if nginx is None:
        pytest.skip("nginx is not installed")
    port, plain = free_port(), free_port()
    site = replaced(
        (DEPLOY / "nginx.conf").read_text(),
        {
            "127.0.0.1:8000": backend,
            f"/etc/ssl/{NAME}/fullchain.pem": str(certificate[0]),
            f"/etc/ssl/{NAME}/privkey.pem": str(certificate[1]),
            "    listen [::]:80;\n": "",
            "    listen [::]:443 ssl;\n": "",
            "listen 80;": f"listen 127.0.0.1:{plain};",
            "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        },
    )
    folders = "".join(
        f"{kind}_temp_path {folder / kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    configuration = folder / "nginx.conf"
    configuration.write_text(
        f"daemon off; master_process off; pid {folder / 'pid'}; error_log stderr warn; events {{}}\n"
        f"http {{ access_log off;\n{folders}{site}}}\n"
    )
    command = [nginx, "-p", str(folder), "-c", str(configuration), "-e", "stderr"]
    tested = subprocess.run([*command, "-t"], capture_output=True, text=True, timeout=60)
    assert tested.returncode == 0, tested.stderr
    assert "[warn]" not in tested.stderr
    return Proxy(command, port, certificate[0], {})


def start_caddy(backend: str, certificate: tuple[Path, Path], folder: Path) -> Proxy:
    caddy = shutil.which("caddy")
    if caddy is None:
        pytest.skip("Caddy is not installed")
    port = free_port()
    site = replaced(
        (DEPLOY / "Caddyfile").read_text(),
        {
            "127.0.0.1:8000": backend,
            f"\n{NAME} {{\n": f"\n{NAME}:{port} {{\n\tbind 127.0.0.1\n"
            f"\ttls {certificate[0]} {certificate[1]}\n",
        },
    )
    configuration = folder / "Caddyfile"
    configuration.write_text(f"{{\n\tadmin off\n\tauto_https disable_redirects\n}}\n{site}")
    environment = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    how = ["--config", str(configuration), "--adapter", "caddyfile"]
    valid = subprocess.run(
        [caddy, "validate", *how], env=environment, capture_output=True, text=True, timeout=60
    )
    assert valid.returncode == 0, valid.stderr
    return Proxy([caddy, "run", *how], port, certificate[0], environment)


@pytest.fixture(scope="module", params=[start_nginx, start_caddy], ids=["nginx", "Caddy"])
def proxy(
    request: pytest.FixtureRequest,
    backend: Server,
    certificate: tuple[Path, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Proxy]:
    begin: Callable[..., Proxy] = request.param
    folder = tmp_path_factory.mktemp("proxy")
    started = begin(backend.url.removeprefix("http://").rstrip("/"), certificate, folder)
    yield started
    started.stop()


def test_the_page_and_its_files_are_under_the_prefix(proxy: Proxy) -> None:
    for path in ("/stereo/", "/stereo/docs", "/stereo/static/css/reference.css", "/stereo/readyz"):
        assert proxy.ask("GET", path).status_code == 200, path
    without_slash = proxy.ask("GET", "/stereo")
    assert without_slash.status_code in (301, 308)
    assert without_slash.headers["Location"].endswith("/stereo/")
    index = proxy.ask("GET", "/stereo/api/v1/", headers={"Accept": "text/html"})
    assert index.headers["Location"] == "../../docs"
    document = proxy.ask("GET", "/stereo/api/v1/openapi.json").json()
    assert document["servers"][0]["url"] == "/stereo"


def test_a_pair_is_matched_with_the_token_and_refused_without(
    proxy: Proxy, whole_pair: dict[str, bytes], forwarded: list[httpx.Response]
) -> None:
    assert len(whole_pair["left"]) + len(whole_pair["right"]) > 1 << 20  # the limit that nginx has by itself
    matched = proxy.ask(
        "POST",
        "/stereo/api/v1/disparity?format=summary&scale=0.25",
        headers={"Authorization": f"Bearer {TOKEN}", "Origin": proxy.origin},  # as an older browser does
        files=as_form(whole_pair),
    )
    assert matched.status_code == 200, matched.text
    forwarded.append(matched)
    assert matched.json()["model"] == "sgbm"
    assert json.loads(matched.headers["Aanet-Camera"])["baseline_m"] == 0.193001
    refused = proxy.ask("POST", "/stereo/api/v1/disparity", files=as_form(whole_pair))
    assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")


def test_other_hosts_do_not_get_through(backend: Server) -> None:
    assert backend.get("/stereo/readyz", headers={"Host": NAME}).status_code == 200
    assert backend.get("/stereo/readyz", headers={"Host": "evil.example"}).status_code == 400
