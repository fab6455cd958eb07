"""A new output is added in one place, and everything that lists or writes outputs has it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# What a contributor would add to the table, before anything reads it.
TOY = """
from aanet.outputs import OUTPUTS, FileType, Output
TOY = FileType(".toy", "application/x-toy")
OUTPUTS["toy"] = Output((TOY,), "what a toy holds", lambda result, suffix, options: b"toy", needs="check")
"""
SAVE = """
import numpy as np
from aanet.result import StereoResult
maps = np.ones((4, 6), np.float32)
left = np.zeros((4, 6, 3), np.uint8)
result = StereoResult(maps, maps, left, right_disparity=maps, occlusion=maps > 2)
print([(file.name, file.read_bytes()) for file in result.save("out", "toy")])
"""
COMMAND = "from aanet.cli.main import main; main()"
HTTP = """
import json
from aanet.web.app import create_app
from aanet.web.settings import Settings
app = create_app(Settings(models=("sgbm",), isolate=False))
print(json.dumps(app.openapi()["paths"]["/api/v1/disparity"]["post"]))
"""


def run(code: str, *arguments: str, folder: object = None) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", TOY + code, *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)


def offered_over_http(code: str) -> tuple[set[str], dict[str, object]]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    operation = json.loads(done.stdout)
    (parameter,) = (each for each in operation["parameters"] if each["name"] == "format")
    return set(parameter["schema"]["enum"]), operation


def test_result_save_has_a_new_output(tmp_path):
    assert run(SAVE, folder=tmp_path).stdout.strip() == "[('toy.toy', b'toy')]"


def test_the_command_has_a_new_output(tmp_path):
    assert "what a toy holds" in " ".join(run(COMMAND, "predict", "--help").stdout.replace("│", " ").split())
    refused = run(COMMAND, "predict", "l.png", "r.png", "--save", "toy.png", folder=tmp_path)
    assert refused.stderr == "aanet: toy can be saved as .toy; got 'toy.png'.\n"
    refused = run(COMMAND, "predict", "l.png", "r.png", "--save", "toy", folder=tmp_path)
    assert refused.stderr == "aanet: Saving toy needs the left-right check: give --check.\n"
    known = run(COMMAND, "predict", "l.png", "r.png", "--save", "video", folder=tmp_path)
    assert known.stderr.endswith("summary, toy.\n")


def test_http_has_a_new_output():
    pytest.importorskip("fastapi")
    formats, operation = offered_over_http(TOY + HTTP)
    assert {"toy", "toy.toy"} <= formats
    assert "what a toy holds, needs check=true" in json.dumps(operation["parameters"])
    assert "application/x-toy" in operation["responses"]["200"]["content"]


def test_http_offers_what_the_command_offers():
    pytest.importorskip("fastapi")
    from aanet import outputs

    formats, operation = offered_over_http(HTTP)
    assert formats == set(outputs.spellings())  # and --save takes what outputs.find takes
    types = {each.media_type for output in outputs.OUTPUTS.values() for each in output.types}
    assert set(operation["responses"]["200"]["content"]) == types
