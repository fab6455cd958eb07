"""A node, a driver or a disk fails in the middle of a run: nothing is lost, and nothing counts twice."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aanet.cluster.manifest import Manifest
from aanet.cluster.prediction import Settings
from aanet.cluster.run import predict_list
from aanet.cluster.work_list import open_list
from aanet.errors import WriteError
from aanet.prediction.outcome import Summary
from helpers.ray_cluster import add_node, ray_cluster
from helpers.ray_runs import SGBM, files, put_pairs, rows, run
from helpers.small_disk import SmallDisk

pytest.importorskip("ray", reason="Ray is not installed; it is in the extra cluster")
pytestmark = [
    pytest.mark.usefixtures("ends_by_itself"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with ray_cluster(1) as started:
        yield started


def rows_of_all_parts(output: Path) -> Counter[str]:
    """How often each pair is in the files of the manifest, before any is taken as a repetition."""
    from pyarrow import parquet

    manifest = Manifest(str(output))
    tables = [parquet.read_table(manifest.storage.location(part)) for part in manifest.parts()]
    return Counter(name for table in tables for name in table.column("name").to_pylist())


def test_a_node_that_is_killed_costs_nothing(tmp_path: Path, cluster: Any) -> None:
    table = put_pairs(tmp_path, 60)
    run("predict", table, "-o", tmp_path / "one", *SGBM)
    node, killed = add_node(cluster, 1), []

    def kill(summary: Summary) -> None:
        if summary.matched and not killed:
            killed.append(summary.matched)
            cluster.remove_node(node, allow_graceful=False)

    settings = Settings(
        {"model": "sgbm", "max_disparity": 16}, str(tmp_path / "out"), ("disparity.npy", "color")
    )
    summary = predict_list(open_list(str(table)), settings, cluster.address, observe=kill)
    assert killed[0] < 60
    assert (summary.matched, summary.failed) == (60, 0)
    assert files(tmp_path / "out") == files(tmp_path / "one")
    assert rows_of_all_parts(tmp_path / "out") == {str(number): 1 for number in range(60)}


DRIVER = """
import sys
import aanet.cluster.manifest as manifest
manifest._PART_SECONDS = 0.0
from aanet.cli.main import main
main()
"""


@pytest.mark.extended
def test_a_run_goes_on_after_its_driver_was_killed(tmp_path: Path, cluster: Any) -> None:
    table, out = put_pairs(tmp_path, 100, 120, 400), tmp_path / "out"
    words = ["predict", str(table), "-o", str(out), *SGBM, "--ray", cluster.address]
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, *words], stderr=subprocess.PIPE, text=True)
    try:
        while driver.poll() is None and not list(out.glob("manifest/part-*")):
            time.sleep(0.02)
    finally:
        driver.kill()
        _, errors = driver.communicate()
    assert driver.returncode == -signal.SIGKILL, errors
    recorded = {row["name"] for row in rows(out)}
    assert 0 < len(recorded) < 100
    before = {name: (out / f"{name}_color.png").stat().st_mtime_ns for name in recorded}
    done = run(*words, "--resume")
    assert f"{100 - len(recorded)} matched, {len(recorded)} were in the manifest" in done.stdout
    assert {name: (out / f"{name}_color.png").stat().st_mtime_ns for name in recorded} == before
    assert rows_of_all_parts(out) == {str(number): 1 for number in range(100)}
    run("predict", table, "-o", tmp_path / "one", *SGBM)
    assert files(out) == files(tmp_path / "one")


@pytest.mark.extended
def test_a_full_disk_ends_the_run_and_resume_goes_on(tmp_path: Path, cluster: Any) -> None:
    disk = SmallDisk(tmp_path / "disk", 800)
    try:
        table, out = put_pairs(tmp_path / "in", 40), disk.folder / "out"
        run("predict", table, "-o", tmp_path / "one", *SGBM)
        words = ("predict", table, "-o", out, *SGBM, "--ray", cluster.address)
        filler = disk.leave_free(120)
        with pytest.raises(WriteError, match="no space left on device"):
            run(*words)
        whole = files(tmp_path / "one")
        left = files(out)
        assert 0 < len(left) < len(whole)
        assert left.items() <= whole.items()  # every file is complete
        filler.unlink()
        assert run(*words, "--resume").exit_code == 0
        assert files(out) == whole
        assert rows_of_all_parts(out) == {str(number): 1 for number in range(40)}
    finally:
        disk.unmount()
