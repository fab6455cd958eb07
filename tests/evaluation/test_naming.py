"""Models have short names that tell them apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from aanet.errors import InputError
from aanet.evaluation.naming import name_models


@pytest.mark.parametrize(
    ("models", "names"),
    [
        (["aanet", "sgbm", "aanet:kitti15"], ["aanet", "sgbm", "aanet:kitti15"]),
        (["runs/a/weights.safetensors", "net.onnx"], ["weights", "net"]),
        (["runs/a/weights.safetensors", "runs/b/weights.safetensors"], ["a/weights", "b/weights"]),
        (["x/a/w.pth", "y/a/w.pth", "w.pth"], ["x/a/w", "y/a/w", "w.pth"]),
        (["mine=runs/a/w.pth", "other=aanet"], ["mine", "other"]),
        (["runs/lr=0.1/w.pth"], ["w"]),
    ],
)
def test_names_are_short_and_different(models: list[str], names: list[str]) -> None:
    assert list(name_models(models)) == names


def test_what_follows_the_name_is_the_model() -> None:
    assert name_models(["mine=runs/a/w.pth"]) == {"mine": "runs/a/w.pth"}


def test_a_file_that_exists_is_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lr=0.1.pth").touch()
    assert name_models(["lr=0.1.pth"]) == {"lr=0.1": "lr=0.1.pth"}


@pytest.mark.parametrize(
    ("models", "sentence"),
    [
        (["aanet", "aanet"], "Two models are called 'aanet'"),
        (["=w.pth"], "NAME=MODEL"),
        (["mine="], "NAME=MODEL"),
    ],
)
def test_names_that_cannot_be_used_are_one_sentence(models: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        name_models(models)
