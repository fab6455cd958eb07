"""The command line as a whole: help, completion, encodings, existing outputs and errors."""

from __future__ import annotations

import errno
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.text import Text
from typer.testing import CliRunner

import aanet
from aanet.cli import main as entry
from aanet.cli.console import status, track
from aanet.errors import AanetError
from helpers import layouts


def leaves(group: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All commands that can be run, with their names."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from leaves(command, *path, name)
        else:
            yield (*path, *name.split()), command


COMMANDS = dict(leaves(typer.main.get_command(entry.app)))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("typer.rich_utils.FORCE_TERMINAL", False)  # true on some build servers
    long, short = (CliRunner().invoke(entry.app, [*path, option]) for option in ("--help", "-h"))
    assert long.exit_code == 0
    assert long.output == short.output
    assert "Usage" in long.output
    assert "bool" not in long.output  # flags take no value
    # Prose fills its lines: a paragraph is broken where the next word does not fit, not as in the source.
    lines = [line.strip() for line in long.output.splitlines() if not line.startswith(("╭", "│", "╰"))]
    for line, following in pairwise(lines):
        if line and following:
            assert len(line) + len(following.split()[0]) > 76


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_the_example_of_every_command_is_valid(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    (example,) = re.findall(r"^Example: aanet (.*)$", command.help, re.MULTILINE)
    words = shlex.split(example)
    assert tuple(words[: len(path)]) == path
    command.make_context("example", words[len(path) :])  # fails for unknown options and missing arguments


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_no_help_text_is_taken_for_markup(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    texts = [command.help, *(parameter.help for parameter in command.params)]
    assert all(texts)
    for text in texts:
        assert Text.from_markup(text).plain == text


def test_one_option_has_one_spelling() -> None:
    spellings: dict[str, set[tuple[str, ...]]] = {}
    for command in COMMANDS.values():
        for parameter in command.params:
            if parameter.param_type_name == "option":
                spellings.setdefault(parameter.opts[0], set()).add(tuple(parameter.opts))
    assert [each for each in spellings.values() if len(each) > 1] == []
    assert spellings["--output"] == {("--output", "-o")}


def test_no_command_at_all_prints_the_help_in_groups() -> None:
    result = CliRunner().invoke(entry.app, [])
    for title in (entry.MATCHING, entry.TRAINING, entry.MODELS):
        assert title in result.output


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["aanet", "pre"], ["predict"]), (["aanet", "data", "check", "kitti2015"], ["kitti2015"])],
)
def test_the_shell_completes_commands_and_datasets(words: list[str], expected: list[str]) -> None:
    shell = {
        "_AANET_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    result = CliRunner().invoke(entry.app, [], prog_name="aanet", env=shell)
    assert result.output.split() == expected


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("arguments", [["--help"], ["data", "check"], ["data", "stats"]], ids=" ".join)
def test_a_legacy_code_page_gets_ascii_instead(
    encoding: str, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if arguments[0] == "data":
        arguments = [*arguments, "kitti2015", str(layouts.kitti2015(tmp_path))]
    output = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setattr(sys, "argv", ["aanet", *arguments])
    with pytest.raises(SystemExit) as stop:
        entry.main()
    assert stop.value.code == 0
    output.flush()
    text = output.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
    assert "?" not in text
    if arguments[:2] == ["data", "check"]:
        assert "+ training/image_3/*_10.png" in text


def test_a_progress_bar_is_for_terminals_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in the logs of many build servers
    with status("Counting"):
        assert list(track(range(3), "Counting", 3)) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("command", "existing"),
    [
        ("convert {tmp}/a.pth", "a.safetensors"),
        ("export aanet -o {tmp}/a.onnx", "a.onnx"),
        ("export aanet -o {tmp}/a.xml", "a.bin"),
        ("figure l.png r.png -o {tmp}/a.png", "a.png"),
        ("predict {tmp}/left {tmp}/right --model sgbm -o {tmp}", "a_color.png"),
        ("evaluate folder {tmp} --model sgbm -o {tmp}", "report.md"),
        ("evaluate folder {tmp} --model sgbm --submission {tmp}/a.zip", "a.zip"),
        ("benchmark -o {tmp}", "report.json"),
        ("pseudo-label folder {tmp} --model sgbm", "disparity_pseudo/b.pfm"),
        ("data stats folder {tmp} -o {tmp}/a.png", "a.png"),
        ("data synthesize -o {tmp}", "FlyingThings3D"),
        ("data preview -o {tmp}/a.png", "a.png"),
        ("calibrate l r --pattern chessboard:9x6 --square 25 -o {tmp}/a.yaml", "a.yaml"),
        ("calibrate l r --pattern chessboard:9x6 --square 25 -o {tmp}/a.yaml", "a.png"),
        ("calibrate board -o {tmp}/a.pdf", "a.pdf"),
    ],
)
def test_an_existing_output_is_not_replaced_unless_told_so(
    command: str, existing: str, tmp_path: Path
) -> None:
    layouts.folder(tmp_path)
    (tmp_path / existing).parent.mkdir(exist_ok=True)
    (tmp_path / existing).write_text("precious")
    before = set(tmp_path.rglob("*"))
    result = CliRunner().invoke(entry.app, shlex.split(command.format(tmp=tmp_path)))
    assert isinstance(result.exception, AanetError)
    assert f"{existing} already exists" in str(result.exception)
    assert "--overwrite" in str(result.exception)
    assert (tmp_path / existing).read_text() == "precious"
    assert set(tmp_path.rglob("*")) == before


def test_version() -> None:
    result = CliRunner().invoke(entry.app, ["--version"])
    assert result.output.strip() == f"aanet {aanet.__version__}"


@pytest.mark.parametrize("arguments", [["--help"], ["predict", "--help"], ["data", "--help"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    # Half a second for the help is only possible as long as none of these is imported for it.
    code = (
        "import sys, contextlib\n"
        f"sys.argv = ['aanet', *{arguments!r}]\n"
        "from aanet.cli.main import main\n"
        "with contextlib.suppress(SystemExit): main()\n"
        "heavy = {'torch', 'cv2', 'openvino', 'matplotlib', 'skimage', 'lightning', 'numpy'}\n"
        "print('LOADED', sorted(heavy & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "LOADED []" in done.stdout


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (AanetError("The pair\nis broken."), "aanet: The pair is broken.\n"),
        (
            OSError(errno.ENOSPC, "No space left on device", "out.png"),
            "aanet: out.png: no space left on device.\n",
        ),
    ],
)
def test_what_a_user_can_mend_is_one_line_and_exit_code_2(
    error: Exception, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(entry, "app", fail)
    with pytest.raises(SystemExit) as stop:
        entry.main()
    assert stop.value.code == 2
    assert capsys.readouterr().err == sentence


def test_public_names_are_there_and_others_are_not() -> None:
    for name in aanet.__all__:
        assert getattr(aanet, name) is not None
    assert set(dir(aanet)) == set(aanet.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Matcher'"):
        _ = aanet.Matcher


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "arguments", "extra"),
    [
        ("lightning", ["train", "synthetic-cpu-longer", "--dry-run"], "train"),
        ("fastapi", ["serve"], "web"),
        ("uvicorn", ["live", "0"], "web"),
    ],
)
def test_a_command_without_its_extra_says_what_to_install(
    package: str, arguments: list[str], extra: str
) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; from aanet.cli.main import main; main()"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, cwd=root
    )
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("aanet: ")
    assert package in last
    assert f"pip install 'aanet[{extra}]'" in last
