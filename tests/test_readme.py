"""The README's own commands and code run as printed, and its tables are up to date."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from aanet.cli.main import app
from aanet.io.images import write_image
from aanet.io.toml import loads
from aanet.models.weights import files
from aanet.training import bundled_recipes
from helpers.scripts import load_script

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


@pytest.mark.slow
def test_the_first_lines_and_the_first_command_work_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("python")
    variables: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), variables)
    by_code = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    assert set(by_code) == set(re.findall(r"out/([\w.]+)", code))  # as its last comment says

    for side in ("left", "right"):
        write_image(f"{side}.png", variables[side])
    variables["calibration"].camera.save("calib.json")
    run(next(command for command in commands() if command[0] == "predict"))
    by_command = {name: Path(f"out/left_{name}").read_bytes() for name in by_code}
    assert by_command == by_code


def test_the_first_screen_has_all_that_a_new_user_needs() -> None:
    first = README.partition("\n## ")[0]
    wanted = ["](docs/images/first.jpg)", "pip install aanet", "aanet.sample_pair()", "aanet predict "]
    places = [first.index(each) for each in [*wanted, "](docs/images/accuracy.png)"]]
    assert places == sorted(places)
    assert "pip install torch --index-url https://download.pytorch.org/whl/cpu" in first
    (code,) = blocks("python")
    assert len([line for line in code.splitlines() if line and not line.startswith("import")]) == 4
    assert len(re.findall(r"^- \*\*", first, re.MULTILINE)) == 5


def test_every_command_is_one_that_exists() -> None:
    mentioned = set(re.findall(r"`aanet ([a-z][a-z-]*)", README)) | {command[0] for command in commands()}
    known = {
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback
    }
    known |= {group.name for group in app.registered_groups if group.name}
    assert mentioned
    assert mentioned <= known


def test_every_extra_is_one_that_exists() -> None:
    project = loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    mentioned = set(re.findall(r"aanet\[(\w+)\]", README))
    assert mentioned
    assert mentioned <= set(project["optional-dependencies"])


def test_every_file_it_links_to_exists() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)", README) if "://" not in link]
    assert len(links) > 5
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_recipe_that_a_page_names_exists() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *files.BUNDLED.glob("*.md")]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    patterns = (r"aanet train ([a-z][\w-]+)(?![\w./-])", r"`((?:synthetic|sceneflow|kitti)\w*-[\w-]+)`")
    trained, mentioned = ({name for text in texts for name in re.findall(each, text)} for each in patterns)
    assert trained
    assert mentioned
    assert sorted((trained | mentioned) - set(bundled_recipes.names())) == []


@pytest.mark.slow
def test_the_tables_are_those_of_the_cards() -> None:
    script = load_script("readme_tables")
    assert script.with_tables(README) == README, "run scripts/readme_tables.py"


def test_a_stale_table_is_noticed_and_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = load_script("readme_tables")
    file = tmp_path / "README.md"
    file.write_text("before\n<!-- toy: by a script -->\n| old |\n<!-- end of toy -->\nafter\n")
    monkeypatch.setattr(script, "README", file)
    monkeypatch.setattr(script, "TABLES", {"toy": lambda: ["| new |"]})
    monkeypatch.setattr(script, "OTHER_PAGES", {})
    monkeypatch.setattr(sys, "argv", ["readme_tables.py", "--check"])
    with pytest.raises(SystemExit, match="stale"):
        script.main()
    monkeypatch.setattr(sys, "argv", ["readme_tables.py"])
    script.main()
    text = "before\n<!-- toy: by a script -->\n\n| new |\n\n<!-- end of toy -->\nafter\n"
    assert file.read_text() == text
    monkeypatch.setattr(script, "TABLES", {"absent": list})
    with pytest.raises(SystemExit, match="absent"):
        script.main()
