"""Runs a page of docs/tutorials: its blocks in order, in one folder, and compares what they print with it.

- `bash`: commands.  `aanet …` runs in this process; `pip install` is not run.
- `python`: code; the blocks of a page share their variables.
- `text`: what the block before it prints, with "…" for parts that do not matter.  Numbers may differ by a few
  percent; times, and rounding errors such as 7.9e-05, by anything.
- any block with `title="FILE"`: the content of a file, which is written.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from aanet.cli.main import app

TUTORIALS = Path(__file__).resolve().parents[2] / "docs" / "tutorials"
TOLERANCE = 0.03  # of a number on a page, relative; and 0.03 absolute
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_NUMBER = r"\d+(?:\.\d+)?"
_TINY = rf"{_NUMBER}e-\d+"
_TOKEN = re.compile(
    rf"(?P<rest>…)|(?P<tiny>{_TINY})|(?P<time>{_NUMBER}(?= m?s\b))|(?P<number>{_NUMBER})|(?P<space>\s+)"
)
_ACCEPTED = {"rest": ".*?", "tiny": _TINY, "time": _NUMBER, "number": f"({_NUMBER})", "space": r"\s+"}

Command = Callable[[list[str]], str]  # from the words of a command to what it prints


@dataclass(frozen=True)
class Block:
    language: str
    file: str
    text: str


@dataclass
class Tutorial:
    """A page.

    Attributes:
        name: Its file name without the suffix.
        smaller: Parts of the page and what the test runs instead; each must be on the page.
        commands: What to run instead of commands, by their beginning.
    """

    name: str
    smaller: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, Command] = field(default_factory=dict)
    variables: dict[str, Any] = field(default_factory=dict)  # of the Python blocks

    def blocks(self) -> list[Block]:
        text = (TUTORIALS / f"{self.name}.md").read_text(encoding="utf-8")
        for part, instead in self.smaller.items():
            assert part in text, f"{self.name}.md no longer has {part!r}"
            text = text.replace(part, instead)
        return [Block(*groups) for groups in _BLOCK.findall(text)]

    def run(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Run all blocks in a folder."""
        monkeypatch.chdir(folder)
        printed = ""
        for block in self.blocks():
            if block.file:
                Path(block.file).parent.mkdir(parents=True, exist_ok=True)
                Path(block.file).write_text(block.text, encoding="utf-8")
            elif block.language == "bash":
                lines = block.text.replace("\\\n", " ").splitlines()
                printed = "".join(self._command(line, monkeypatch) for line in lines if line)
            elif block.language == "python":
                with contextlib.redirect_stdout(io.StringIO()) as output:
                    exec(compile(block.text, f"{self.name}.md", "exec"), self.variables)
                printed = output.getvalue()
            elif block.language == "text":
                assert_shown(block.text, printed)

    def _command(self, line: str, monkeypatch: pytest.MonkeyPatch) -> str:
        for beginning, instead in self.commands.items():
            if line.startswith(beginning):
                return instead(shlex.split(line, comments=True))
        words = shlex.split(line, comments=True)
        if words[:2] == ["pip", "install"]:
            return ""
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            monkeypatch.setenv(name, value)
            return ""
        if words[0] == "aanet":
            result = CliRunner().invoke(app, words[1:])
            assert result.exit_code == 0, (line, result.output, result.exception)
            return result.output
        done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False, env=os.environ)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        return done.stdout


def assert_shown(shown: str, printed: str) -> None:
    """Whether a page shows what was printed."""
    pattern, expected, end, text = "", [], 0, shown.strip()
    for token in _TOKEN.finditer(text):
        pattern += re.escape(text[end : token.start()]) + _ACCEPTED[str(token.lastgroup)]
        end = token.end()
        if token["number"]:
            expected.append(float(token["number"]))
    pattern += re.escape(text[end:])
    found = re.fullmatch(pattern, printed.strip(), re.DOTALL)
    assert found, f"the page shows\n{shown}\nbut this was printed:\n{printed}"
    for number, wanted in zip(map(float, found.groups()), expected, strict=True):
        assert number == pytest.approx(wanted, rel=TOLERANCE, abs=TOLERANCE), (shown, printed)
