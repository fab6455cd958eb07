"""The Python example of docs/evaluating.md runs as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from helpers import layouts

PAGE = Path(__file__).parents[2] / "docs" / "evaluating.md"


def test_any_function_can_be_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    layouts.kitti2015(tmp_path / "data" / "kitti2015")
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})
    assert "['kitti2015 000000', 'kitti2015 000005']" in capsys.readouterr().out
