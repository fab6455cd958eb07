"""The command as a whole: help at once, errors in one sentence."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import aanet
from aanet.cli import main as entry
from aanet.errors import AanetError

COMMANDS = [
    name for command in entry.app.registered_commands for name in [command.name or command.callback.__name__]
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    result = CliRunner().invoke(entry.app, [command, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.output


def test_no_command_at_all_prints_the_help() -> None:
    result = CliRunner().invoke(entry.app, [])
    assert "Commands" in result.output


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


@pytest.mark.parametrize(
    ("package", "arguments", "extra"),
    [
        ("lightning", ["train", "recipes/synthetic-cpu-longer.toml", "--dry-run"], "train"),
        ("fastapi", ["serve"], "web"),
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
    assert done.stderr.splitlines()[-1] == (
        f"aanet: This command needs {package}: pip install 'aanet[{extra}]' brings it."
    )
