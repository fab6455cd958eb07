"""Each tutorial runs from its first block to its last, and prints what it shows."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
from pathlib import Path

import pytest

from aanet.io.disparity import read_disparity
from aanet.io.points import read_ply
from helpers.server import Server, start_server
from helpers.tutorial_rig import photograph
from helpers.tutorials import TUTORIALS, Tutorial, assert_shown

DOCS = TUTORIALS.parent
PAGES = sorted([*TUTORIALS.glob("*.md"), *(DOCS / "notebooks").glob("*.ipynb")])


@pytest.mark.slow
def test_first_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Tutorial("first-pair").run(tmp_path, monkeypatch)
    for file in ("out/disparity.png", "out/half/left_disparity.png", "out/sgbm/left_disparity.png"):
        assert read_disparity(tmp_path / file).shape == (500, 741)
    everywhere, certain = (
        len(read_ply(tmp_path / file)[0]) for file in ("out/command/left_points.ply", "out/points.ply")
    )
    assert 100_000 < certain < everywhere


@pytest.mark.slow
def test_own_camera(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photograph(tmp_path)
    page = Tutorial("own-camera")
    page.run(tmp_path, monkeypatch)
    assert page.variables["result"].distance((63, 66), (420, 54)).meters == pytest.approx(0.7, rel=0.02)
    assert (tmp_path / "board.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "out/scene-left_points.ply").is_file()


@pytest.mark.slow
def test_train_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    smaller = {
        "steps=20": "steps=2",
        "step 20": "step 2",
        "[192, 320]": "[96, 192]",
        "batch=2": "batch=1 --set run.workers=0 --set run.log_steps=2",
    }
    Tutorial("train-own-folder", smaller).run(tmp_path, monkeypatch)
    assert (tmp_path / "report/report.md").is_file()
    assert read_disparity(tmp_path / "out/0000_disparity.png").shape == (240, 400)


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("cmake") and shutil.which("c++")), reason="no CMake or C++ compiler")
def test_export_and_cpp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ("openvino_example.cpp", "images.hpp"):
        (tmp_path / "cpp").mkdir(exist_ok=True)
        shutil.copy(DOCS / "deployment" / file, tmp_path / "cpp")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    # The export for the browser takes a minute; tests/export has the same for smaller networks.
    Tutorial("export-cpp-browser", commands={"aanet export aanet_fast -o model.onnx": lambda _: ""}).run(
        tmp_path, monkeypatch
    )
    assert (tmp_path / "cpp.pfm").is_file()
    assert "onnxruntime-web" in (tmp_path / "index.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl")
def test_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    servers: list[Server] = []

    def serve(words: list[str]) -> str:
        for earlier in servers:  # "Ctrl+C stops the server"
            earlier.stop()
        servers.append(start_server(*words[2:]))
        lines = servers[-1].process.stdout
        assert lines is not None
        return f"Web page: {servers[-1].url}\n{lines.readline()}"

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    address = f"127.0.0.1:{free_port()}"
    smaller = {"--port 8000": f"--port {address.partition(':')[2]}", "127.0.0.1:8000": address}
    smaller["--host 0.0.0.0 "] = ""  # the port of a test is not for other machines
    try:
        Tutorial("service", smaller, {"aanet serve": serve}).run(tmp_path, monkeypatch)
    finally:
        for server in servers:
            server.stop()
    assert len(servers) == 2
    assert len(read_ply(tmp_path / "points.ply")[0]) > 100_000


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_every_page_is_run() -> None:
    tested = set(re.findall(r'Tutorial\(\s*"([\w-]+)"', Path(__file__).read_text(encoding="utf-8")))
    assert tested == {path.stem for path in TUTORIALS.glob("*.md")} - {"index"}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s#]+)", page.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


SHOWN = "Wrote a.ply (3.10 MB) in 0.5 s.\nOpenVINO …, 741×500\n"


@pytest.mark.parametrize(
    ("printed", "agrees"),
    [
        ("Wrote a.ply (3.11 MB) in 27 s.\nOpenVINO 2026.4.1, 741×500\n", True),
        ("Wrote a.ply (3.50 MB) in 0.5 s.\nOpenVINO 2026.4.1, 741×500\n", False),  # another number
        ("Wrote b.ply (3.10 MB) in 0.5 s.\nOpenVINO 2026.4.1, 741×500\n", False),  # another word
        ("Wrote a.ply (3.10 MB) in 0.5 s.\nOpenVINO 2026.4.1, 741×500\nmore\n", False),
        ("", False),
    ],
)
def test_what_a_page_shows_is_held_against_what_was_printed(printed: str, agrees: bool) -> None:
    if agrees:
        assert_shown(SHOWN, printed)
    else:
        with pytest.raises(AssertionError):
            assert_shown(SHOWN, printed)
