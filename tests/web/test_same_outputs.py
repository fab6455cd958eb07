"""The command line and the HTTP API offer the same outputs, under the same names, with the same content."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from aanet import outputs
from aanet.cli.main import app
from helpers.server import Server


def test_the_command_writes_what_the_server_sends(
    server: Server, tiny_pair: dict[str, bytes], tmp_path: Path
) -> None:
    schema = server.get("/api/v1/openapi.json").json()
    parameters = schema["paths"]["/api/v1/disparity"]["post"]["parameters"]
    (offered,) = (each["schema"]["enum"] for each in parameters if each["name"] == "format")
    assert set(offered) >= set(outputs.OUTPUTS)

    for part, data in tiny_pair.items():
        (tmp_path / part).with_suffix(".json" if part == "calib" else ".png").write_bytes(data)
    pair = [str(tmp_path / "left.png"), str(tmp_path / "right.png"), "--calib", str(tmp_path / "calib.json")]
    options = ["--model", "sgbm", "--check", "--save", ",".join(offered), "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["predict", *pair, *options])
    assert done.exit_code == 0, (done.output, done.exception)

    sent = {}
    for name in offered:
        response = server.match(tiny_pair, format=name, check=True)
        assert response.status_code == 200, (name, response.text)
        sent[response.headers["content-disposition"].split('"')[1]] = response.content
    written = {path.name.removeprefix("left_"): path.read_bytes() for path in (tmp_path / "out").iterdir()}
    summaries = [json.loads(files.pop("summary.json")) for files in (sent, written)]
    for summary in summaries:
        del summary["seconds"]
    assert summaries[0] == summaries[1]
    assert sent.keys() == written.keys()
    assert [name for name, data in sent.items() if data != written[name]] == []


def test_the_options_of_depth_points_and_colors_are_the_same(
    server: Server, small_pair: dict[str, bytes], tmp_path: Path
) -> None:
    for part, data in small_pair.items():
        (tmp_path / part).with_suffix(".json" if part == "calib" else ".png").write_bytes(data)
    pair = [str(tmp_path / "left.png"), str(tmp_path / "right.png"), "--calib", str(tmp_path / "calib.json")]
    plain = {name: server.match(small_pair, format=name).content for name in ("depth.npy", "ply", "color")}
    limits = {"min_confidence": 0.7, "max_depth": 4}
    for name, chosen in (
        ("depth.npy", limits),
        ("ply", limits),
        ("ply", {"flying_pixels": True}),
        ("color", {"range": "10:70"}),
        ("color", {"range": "1.5:6m"}),
    ):
        words = [
            word
            for option, value in chosen.items()
            for word in ("--" + option.replace("_", "-"), *([] if value is True else [str(value)]))
        ]
        options = ["--model", "sgbm", "--save", name, "--overwrite", "-o", str(tmp_path / "out")]
        done = CliRunner().invoke(app, ["predict", *pair, *options, *words])
        assert done.exit_code == 0, (done.output, done.exception)
        written = (tmp_path / "out" / f"left_{outputs.find(name).file_name}").read_bytes()
        assert server.match(small_pair, format=name, **chosen).content == written
        assert written != plain[name], (name, chosen)
    refused = server.match(small_pair, format="color", range="70:10")
    assert refused.status_code == 422
    assert "LOW:HIGH in pixels" in refused.json()["message"]
