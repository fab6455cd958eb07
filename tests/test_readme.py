"""The README's own commands and code run as printed."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aanet.cli.main import app
from aanet.data.motorcycle import MOTORCYCLE_CAMERA, motorcycle
from aanet.inference.hints import MAX_UPSCALE
from aanet.io.images import write_image
from aanet.models.weights import checkpoint, files

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [text for kind, text in fenced if kind == language]


def commands() -> list[list[str]]:
    """The `aanet …` lines of blocks without a language, without their comments."""
    lines = [line for block in blocks("") for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("aanet ")]


def run(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, (arguments, result.output, result.exception)


def test_the_first_commands_and_the_python_lines_work_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pair = motorcycle()  # what `make demo` leaves, which has a test of its own
    for side, image in (("left", pair.left), ("right", pair.right)):
        write_image(tmp_path / f"out/demo/{side}.png", image)
    MOTORCYCLE_CAMERA.save(tmp_path / "out/demo/calib.json")
    (code,) = blocks("python")
    exec(compile(code, "README.md", "exec"), {})
    assert "(500, 741)" in capsys.readouterr().out
    by_code = {path.name for path in (tmp_path / "out/mine").iterdir()}
    shutil.rmtree(tmp_path / "out/mine")
    (predict,) = (command for command in commands() if command[0] == "predict" and "--calib" in command)
    run(predict)
    written = {path.name for path in (tmp_path / "out/mine").iterdir()}
    assert written == by_code
    assert {"left_disparity.png", "left_color.png", "left_points.ply"} <= written


def test_every_command_is_one_that_exists() -> None:
    mentioned = set(re.findall(r"`aanet ([a-z-]+)", README)) | {command[0] for command in commands()}
    known = {
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback
    }
    known |= {group.name for group in app.registered_groups if group.name}
    assert mentioned
    assert mentioned <= known


def test_every_file_it_links_to_exists() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)", README) if "://" not in link]
    assert len(links) > 5
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_recipe_that_a_page_names_exists() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "src/aanet/weights").glob("*.md")]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    named = {name for text in texts for name in re.findall(r"recipes/([\w-]+\.toml)", text)}
    assert named
    assert [name for name in sorted(named) if not (ROOT / "recipes" / name).exists()] == []


def test_the_scores_are_those_of_the_card() -> None:
    scores = files.facts("aanet")["scores"]
    for place, percentage in (("motorcycle", "bad2"), ("middlebury", "bad2"), ("kitti2015", "d1")):
        ours, sgbm = scores["aanet"][place], scores["sgbm"][place]
        cells = [f"{ours['epe']:.2f}", f"{sgbm['epe']:.2f}"]
        cells += [f"{ours[percentage]:.1f} %", f"{sgbm[percentage]:.1f} %"]
        if "edge_epe" in ours:
            cells += [f"{ours['edge_epe']:.2f}", f"{sgbm['edge_epe']:.2f}"]
        assert f"| {' | '.join(cells)} |" in README, place


def test_how_often_it_says_that_sgbm_is_beaten_is_true() -> None:
    scores = files.facts("aanet")["scores"]
    sgbm = scores["sgbm"]
    beaten = {
        key: [scores[key][place][metric] < sgbm[place][metric] for place in sgbm for metric in sgbm[place]]
        for key in ("aanet", "network alone")
    }
    assert "They beat SGBM in **every figure of the card**" in README
    assert all(beaten["aanet"])
    assert "network alone beats SGBM in most figures, not in all" in README
    assert len(beaten["network alone"]) / 2 < sum(beaten["network alone"]) < len(beaten["network alone"])


def test_what_it_says_of_upscaling_and_of_the_small_network_is_on_the_cards() -> None:
    words = " ".join(README.split())
    facts, small = files.facts("aanet"), files.facts("stereonet_aa")
    assert f"in {facts['hours']:g} hours" in words
    assert (
        f"narrower than {checkpoint.read('aanet').hints.upscale_to} pixels are upscaled for it, at most "
        f"{MAX_UPSCALE:g}" in words
    )
    plain = facts["scores"]["network alone"]["motorcycle"]
    assert f"Motorcycle has {plain['epe']:.2f} and {plain['bad2']:.1f} %" in words
    scores = small["scores"]["stereonet_aa"]
    for place in ("motorcycle", "middlebury"):
        assert f"{scores[place]['epe']:.2f} and {scores[place]['bad2']:.1f} %" in words, place
    assert f"D1 {scores['kitti2015']['d1']:.1f} %" in words
    assert f"has had {small['hours']:g} hours of training" in words
    sgbm = small["scores"]["sgbm"]
    beaten = [scores[place][metric] < sgbm[place][metric] for place in sgbm for metric in sgbm[place]]
    assert f"beats SGBM in {sum(beaten)} of the {len(beaten)} figures of its card" in words
    assert "edges are still softer than SGBM's on Motorcycle and on Middlebury 2005 and 2006" in words
    softer = [place for place in sgbm if scores[place].get("edge_epe", 0) > sgbm[place].get("edge_epe", 0)]
    assert softer == ["motorcycle", "middlebury"]
