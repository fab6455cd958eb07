"""Two writers of one output, export, cache or dataset: a whole result of one of them, or a refusal."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aanet.cli.main import app
from aanet.engines.openvino import cache
from aanet.engines.openvino.engine import OpenVINOEngine
from aanet.errors import UnsupportedError, WriteError
from aanet.inference.spec import NetworkSpec
from aanet.io.atomic import temporary_folder, write_bytes, write_together
from aanet.io.locking import locked_folder
from helpers import layouts
from helpers.crash_scenarios import pair_of_files, publish, put_pairs

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="folders have no locks on Windows")


def at_once(*actions: Callable[[], object]) -> None:
    """Run functions in threads; each opens the folder itself, so that locks work as between processes."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(actions))

    def start(action: Callable[[], object]) -> None:
        barrier.wait()
        try:
            action()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=start, args=[action]) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_the_files_of_one_result_are_of_one_writer(tmp_path: Path) -> None:
    def write(content: bytes) -> None:
        write_together(tmp_path, {tmp_path / f"{number}.npy": content for number in range(4)})

    for _ in range(20):
        at_once(lambda: write(b"one"), lambda: write(b"other"), lambda: write(b"third"))
        assert len({file.read_bytes() for file in tmp_path.iterdir()}) == 1
        assert len(list(tmp_path.iterdir())) == 4


def test_only_one_writer_creates_files(tmp_path: Path) -> None:
    refused = []

    def write(content: bytes) -> None:
        try:
            write_together(tmp_path, {tmp_path / name: content for name in "ab"}, overwrite=False)
        except WriteError as error:
            refused.append(str(error))

    at_once(*(lambda text=text: write(text) for text in (b"1", b"2", b"3")))
    assert len(refused) == 2
    assert "a already exists and is not replaced" in refused[0]
    assert len({file.read_bytes() for file in tmp_path.iterdir()}) == 1


def test_a_temporary_folder_in_use_is_no_leftover(tmp_path: Path) -> None:
    killed = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os, sys\n"
            "from pathlib import Path\n"
            "from aanet.io.atomic import temporary_folder\n"
            "with temporary_folder(Path(sys.argv[1])) as folder:\n"
            "    (folder / 'file').write_bytes(b'half')\n"
            "    os._exit(9)",
            str(tmp_path),
        ],
        check=False,
    )
    assert killed.returncode == 9
    (left,) = tmp_path.iterdir()
    script = "import sys; from aanet.io.atomic import write_bytes; write_bytes(sys.argv[1], b'content')"
    with temporary_folder(tmp_path) as mine:  # which also removes what the killed process left
        assert not left.exists()
        subprocess.run([sys.executable, "-c", script, str(tmp_path / "other")], check=True)
        assert mine.is_dir()
    write_bytes(tmp_path / "last", b"content")
    assert {path.name for path in tmp_path.iterdir()} == {"other", "last"}


def test_a_reader_sees_one_of_two_exports_at_every_moment(tmp_path: Path) -> None:
    pair_of_files(tmp_path, 1.0)
    pair_of_files(tmp_path / "new", 2.0)
    pair_of_files(tmp_path / "old", 1.0)
    seen = set()

    def write(which: str) -> None:
        for _ in range(15):
            publish(tmp_path, which)

    def read() -> None:
        for _ in range(30):
            seen.add(OpenVINOEngine.from_exported(tmp_path / "model.xml")[1].weights)

    at_once(lambda: write("new"), lambda: write("old"), read)
    assert seen <= {"random 1.0", "random 2.0"}
    assert not list(tmp_path.glob(".*"))


def test_a_cache_entry_is_of_one_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AANET_CACHE", str(tmp_path))

    def store(content: str) -> None:
        def write(path: Path) -> NetworkSpec:
            path.write_text(content)
            path.with_suffix(".bin").write_text(content)
            return NetworkSpec("aanet", 48, 500, True)

        assert cache.store("key", write) is not None

    for _ in range(10):
        at_once(lambda: store("one"), lambda: store("other"))
        found = cache.load("key")
        assert found is not None
        assert found.model.read_text() == found.model.with_suffix(".bin").read_text()
        found.model.write_text("damaged")  # both replace it in the next round
    assert [path.name for path in (tmp_path / "openvino").iterdir()] == ["key"]


def test_a_dataset_has_one_writer(tmp_path: Path) -> None:
    size = ["--height", "32", "--width", "48", "--max-disparity", "16"]
    words = ["data", "synthesize", "-n", "1", *size, "-o", str(tmp_path), "--overwrite"]
    folder = tmp_path / "FlyingThings3D"
    with locked_folder(folder):
        error = CliRunner().invoke(app, words).exception
    assert isinstance(error, UnsupportedError)
    assert "Another process is writing into" in str(error)
    assert not list(folder.iterdir())
    assert CliRunner().invoke(app, words).exit_code == 0
    root = layouts.kitti2015(tmp_path / "kitti")
    with locked_folder(root):
        error = CliRunner().invoke(app, ["pseudo-label", "kitti2015", str(root), "--model", "sgbm"]).exception
    assert isinstance(error, UnsupportedError)


@pytest.mark.slow
def test_two_predictions_into_one_folder_share_the_work(tmp_path: Path) -> None:
    put_pairs(tmp_path)
    words = [sys.executable, "-m", "aanet", "predict", str(tmp_path / "left"), str(tmp_path / "right")]
    words += ["--model", "sgbm", "--max-disparity", "16", "-o", str(tmp_path / "out"), "--resume"]
    processes = [subprocess.Popen(words, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[1] for process in processes] == ["", ""]
    assert [process.returncode for process in processes] == [0, 0]
    assert len(list((tmp_path / "out").iterdir())) == 4
