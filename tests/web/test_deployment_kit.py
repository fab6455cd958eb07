"""The files in `deploy/`: what they copy exists, and their commands run, as far as they do without Docker."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from aanet.cli.serve import serve
from helpers.server import Server

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile with their arguments."""
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines if line and line[0] != "#"]


def arguments(name: str) -> list[str]:
    return [text for instruction, text in instructions() if instruction == name]


def options_of(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z-]+", text))


def known_options() -> set[str]:
    from inspect import signature

    names = {f"--{name.replace('_', '-')}" for name in signature(serve).parameters}
    return names | {"--open"}


def test_everything_that_is_copied_exists_and_is_not_ignored() -> None:
    sources = [word for text in arguments("COPY") if "--from" not in text for word in text.split()[:-1]]
    assert {"src", "pyproject.toml", "constraints.txt"} <= set(sources)
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    assert ignored[0] == "*"
    for source in sources:
        assert (ROOT / source).exists(), source
        assert any(fnmatch.fnmatch(source, each[1:]) for each in ignored if each[0] == "!"), source


def test_the_package_can_be_built_from_what_is_copied(tmp_path: Path) -> None:
    sources = [word for text in arguments("COPY") if "--from" not in text for word in text.split()[:-1]]
    for source in sources:
        if (ROOT / source).is_file():
            shutil.copy(ROOT / source, tmp_path / source)
        else:
            shutil.copytree(ROOT / source, tmp_path / source, ignore=shutil.ignore_patterns("bundled"))
    command = [sys.executable, "-m", "hatchling", "metadata"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert built.returncode == 0, built.stderr
    metadata = json.loads(built.stdout)
    assert metadata["name"] == "aanet"
    assert "Learned stereo matching" in metadata["readme"]["text"]


def test_versions_are_pinned_and_nothing_runs_as_root() -> None:
    assert arguments("FROM") == ["python:${PYTHON} AS build", "python:${PYTHON}"]
    assert re.fullmatch(r"PYTHON=3\.\d+-slim-\w+", arguments("ARG")[0])
    (torch,) = (text for text in arguments("RUN") if "torch" in text)
    assert "--index-url https://download.pytorch.org/whl/cpu" in torch
    command = re.search(r"\$\((.*)\)", torch)
    assert command
    found = subprocess.run(["sh", "-c", command[1]], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert re.fullmatch(r"torch==[\d.]+\n", found.stdout)
    (package,) = (text for text in arguments("RUN") if ".[web]" in text)
    assert "-c constraints.txt" in package
    assert arguments("USER") == ["10001:10001"]
    order = [name for name, _ in instructions()]
    assert order.index("USER") < order.index("ENTRYPOINT")


@pytest.mark.slow
def test_the_bundled_networks_are_converted_into_the_cache(tmp_path: Path) -> None:
    """With the smallest of them instead of all."""
    (text,) = (text for text in arguments("RUN") if "bundled_names" in text)
    code = re.fullmatch(r'python -c "(.*)" \$MODELS', text)
    assert code
    cache = tmp_path / "cache"
    words = [sys.executable, "-c", code[1], "stereonet_aa"]
    environment = {**os.environ, "AANET_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    subprocess.run(words, check=True, env=environment, timeout=300)
    (spec,) = cache.glob("openvino/*/spec.json")
    assert json.loads(spec.read_text())["spec"]


def test_the_container_starts_and_its_health_is_checked(
    start: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    (entry,) = arguments("ENTRYPOINT")
    words = json.loads(entry)
    assert words[:2] == ["aanet", "serve"]
    options = dict(zip(words[2::2], words[3::2], strict=True))
    assert options == {"--host": "0.0.0.0", "--port": "8000"}
    monkeypatch.delenv("AANET_TOKEN", raising=False)
    refused = subprocess.run(
        [sys.executable, "-m", "aanet", *words[1:]], capture_output=True, text=True, timeout=120
    )
    assert refused.returncode == 2  # without a token, nobody must reach it
    assert "requires --token" in refused.stderr
    monkeypatch.setenv("AANET_TOKEN", "s3cret")
    server = start("--model", "sgbm")  # on this machine and on a free port, unlike the container
    port = server.url.rstrip("/").rsplit(":", 1)[1]
    (check,) = arguments("HEALTHCHECK")
    python, *words = json.loads(check.split("CMD ")[1])
    assert (python, words[-1].count("8000")) == ("python", 1)
    healthy = [sys.executable, *(word.replace("8000", port) for word in words)]
    assert subprocess.run(healthy, timeout=60).returncode == 0
    server.stop()
    assert subprocess.run(healthy, stderr=subprocess.DEVNULL, timeout=60).returncode == 1


def test_every_option_that_the_kit_names_exists() -> None:
    page = (ROOT / "docs" / "deploying.md").read_text()
    commands = re.findall(r"aanet serve[^\n`]*", page)
    texts = [*commands, *((DEPLOY / name).read_text() for name in ("nginx.conf", "Caddyfile"))]
    texts += re.findall(r"ExecStart=.*", (DEPLOY / "aanet.service").read_text())
    named = set().union(*map(options_of, texts))
    assert {"--allowed-host", "--root-path"} <= named
    assert named <= known_options()


def test_the_compose_file_is_closed_where_it_can_be() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed (extra dev)")
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["aanet"]
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert "?" in service["environment"]["AANET_TOKEN"]  # compose refuses to start without it
    assert options_of(" ".join(service["command"])) <= known_options()


def test_the_systemd_unit_is_valid(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd is not installed")
    unit = tmp_path / "aanet.service"
    unit.write_text((DEPLOY / "aanet.service").read_text().replace("/opt/aanet/bin/aanet", sys.executable))
    done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    unit.write_text(unit.read_text() + "\n[Service]\nProtectSystm=yes\n")
    wrong = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, timeout=120)
    assert "ProtectSystm" in wrong.stderr  # it would notice
