"""The C++ of the documentation compiles, runs and gives the matcher's disparity."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import openvino
import pytest

from aanet.data.motorcycle import motorcycle
from aanet.io.disparity import read_disparity
from helpers.exported_networks import Exported

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "deployment"
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")


def runtime_of(suffix: str) -> tuple[str, list[str]]:
    """The example for a format, and what its compiler must be told; skips with what is missing."""
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    if suffix == ".xml":
        package = Path(openvino.__file__).parent
        libraries = sorted((package / "libs").glob("libopenvino.so*"))
        if not libraries or not (package / "include" / "openvino" / "openvino.hpp").is_file():
            pytest.skip("this openvino package has no headers")
        where = f"-Wl,-rpath,{package / 'libs'}"
        return "openvino", [f"-isystem{package / 'include'}", str(libraries[0]), where]
    return "onnxruntime", ["-lonnxruntime"]


def lacks_onnxruntime() -> bool:
    probe = ["-x", "c++", "-fsyntax-only", "-include", "onnxruntime_cxx_api.h", "/dev/null"]
    return (
        COMPILER is None
        or subprocess.run([COMPILER, *probe], capture_output=True, check=False).returncode != 0
    )


# Asked before the network is exported, which takes longer than the test.
without_headers = pytest.mark.skipif(
    lacks_onnxruntime(), reason="no headers of ONNX Runtime (its Python package has none)"
)


@pytest.mark.slow
@pytest.mark.parametrize("exported", [".xml", pytest.param(".onnx", marks=without_headers)], indirect=True)
def test_the_example_gives_the_matchers_disparity(exported: Exported, tmp_path: Path) -> None:
    name, options = runtime_of(exported.path.suffix)
    program, result = tmp_path / name, tmp_path / "disparity.pfm"
    assert COMPILER is not None
    source = EXAMPLES / f"{name}_example.cpp"
    command = [COMPILER, "-std=c++17", "-Wall", "-Werror", str(source), *options, "-o", str(program)]
    subprocess.run(command, check=True)

    sample = motorcycle()
    pair = [np.ascontiguousarray(image[100:201, 100:283]) for image in (sample.left, sample.right)]
    files = [tmp_path / "left.ppm", tmp_path / "right.ppm"]
    for file, image in zip(files, pair, strict=True):
        file.write_bytes(b"P6\n%d %d\n255\n" % image.shape[1::-1] + image.tobytes())
    subprocess.run([program, exported.path, *files, result], check=True)
    expected = exported.matcher(*pair).disparity
    np.testing.assert_allclose(read_disparity(result), expected, atol=1e-3)


@pytest.mark.parametrize("name", ["openvino", "onnxruntime"])
def test_the_page_shows_the_example_that_is_compiled(name: str) -> None:
    source = (EXAMPLES / f"{name}_example.cpp").read_text(encoding="utf-8")
    assert f"```cpp\n{source}```" in EXAMPLES.with_suffix(".md").read_text(encoding="utf-8")
