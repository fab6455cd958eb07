"""`aanet predict --ray` on a real cluster of two nodes, which is this machine."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from aanet.errors import AanetError
from helpers.ray_cluster import ray_cluster
from helpers.ray_runs import SGBM, files, put_pairs, rows, run

pytest.importorskip("ray", reason="Ray is not installed; it is in the extra cluster")
pytestmark = [
    pytest.mark.usefixtures("ends_by_itself"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ray_cluster(1, 1) as cluster:
        yield cluster.address


def test_the_outputs_are_those_of_one_machine(tmp_path: Path, address: str) -> None:
    table = put_pairs(tmp_path, 10)
    (tmp_path / "right/3.png").write_text("this is text")
    assert run("predict", table, "-o", tmp_path / "one", *SGBM).exit_code == 2
    expected = files(tmp_path / "one")
    assert len(expected) == 18
    outputs = {1: str(tmp_path / "a"), 2: f"file://{tmp_path}/b"}
    for workers, output in outputs.items():
        done = run("predict", table, "-o", output, *SGBM, "--ray", address, "--workers", workers, "--json")
        assert done.exit_code == 2, done.output
        facts = json.loads(done.stdout)
        assert (facts["matched"], facts["failed"]) == (9, 1)
    assert files(tmp_path / "a") == files(tmp_path / "b") == expected
    found = rows(tmp_path / "b")
    assert [row["name"] for row in found] == [str(number) for number in range(10)]
    assert [row["error"] is None for row in found] == [number != 3 for number in range(10)]
    assert "its content is text" in found[3]["error"]
    assert (found[0]["width"], found[0]["height"]) == (56, 24)
    assert found[0]["left"] == str(tmp_path / "left/0.png")
    assert 0 < found[0]["mean_confidence"] <= 1
    assert found[0]["written_bytes"] == sum(len(data) for name, data in expected.items() if name[0] == "0")
    assert found[0]["read_bytes"] == sum(
        (tmp_path / f"{side}/0.png").stat().st_size for side in ("left", "right")
    )
    assert len({row["node"] for row in found}) == 2  # both nodes worked
    assert not list((tmp_path / "b/manifest").glob("plan*"))


@pytest.mark.extended
def test_a_url_a_folder_and_parquet_give_the_same(tmp_path: Path, address: str) -> None:
    """local:// goes through fsspec like any URL."""
    import pyarrow as pa
    from pyarrow import parquet

    put_pairs(tmp_path / "in", 3)
    run("predict", tmp_path / "in/pairs.csv", "-o", tmp_path / "one", *SGBM)
    base = f"local://{tmp_path}/in"
    urls = {side: [f"{base}/{side}/{number}.png" for number in range(3)] for side in ("left", "right")}
    parquet.write_table(pa.table(urls), tmp_path / "pairs.parquet")
    for number, source in enumerate((base, f"{base}/pairs.csv", tmp_path / "pairs.parquet", tmp_path / "in")):
        output = f"local://{tmp_path}/out{number}"
        done = run("predict", source, "-o", output, *SGBM, "--ray", address)
        assert done.exit_code == 0, done.output
        assert files(tmp_path / f"out{number}") == files(tmp_path / "one")
        assert len(rows(output)) == 3


def test_resume_repeats_nothing_and_refuses_other_work(tmp_path: Path, address: str) -> None:
    table = put_pairs(tmp_path, 6)
    words = ("predict", table, "-o", tmp_path / "out", *SGBM, "--ray", address)
    assert run(*words).exit_code == 0
    before = files(tmp_path / "out")
    (tmp_path / "out/2_color.png").unlink()  # a pair that is in the manifest is not matched again
    done = run(*words, "--resume")
    assert "0 matched, 6 were in the manifest" in done.stdout
    assert not (tmp_path / "out/2_color.png").exists()
    with pytest.raises(AanetError, match="go on with --resume, choose another output"):
        run(*words)
    with pytest.raises(AanetError, match=r"belongs to a run with other options \(scale\)"):
        run(*words, "--resume", "--scale", 0.5)
    assert run(*words, "--overwrite").exit_code == 0
    assert files(tmp_path / "out") == before
    put_pairs(tmp_path, 7)
    with pytest.raises(AanetError, match="belongs to another list of pairs"):
        run(*words, "--resume")


def test_a_dataset_in_and_a_dataset_out(tmp_path: Path, address: str) -> None:
    import ray

    from aanet.cluster import predict

    put_pairs(tmp_path, 3)
    ray.init(address=address, log_to_driver=False)
    try:
        items = [
            {"left": str(tmp_path / "left/0.png"), "right": str(tmp_path / "right/0.png"), "camera": "front"},
            {"left": str(tmp_path / "left/1.png"), "right": str(tmp_path / "missing.png"), "camera": "rear"},
            {
                "left": str(tmp_path / "left/2.png"),
                "right": str(tmp_path / "right/2.png"),
                "camera": "rear",
                "name": "../../escape",
            },
        ]
        items = [{"name": None, **item} for item in items]
        dataset = predict(
            ray.data.from_items(items), "sgbm", save=["disparity.npy"], max_disparity=16, workers=1
        )
        found = {row["camera"] + str(row["error"])[:8]: row for row in dataset.take_all()}
        assert len(found) == 3
        good = found["frontNone"]
        disparity = np.load(io.BytesIO(good["disparity.npy"]))
        assert np.median(disparity[:, 16:]) == 4
        errors = sorted(row["error"] or "" for row in found.values())
        assert "cannot be the beginning of the names of output files" in errors[1]
        assert "missing.png does not exist" in errors[2]
    finally:
        ray.shutdown()


@pytest.mark.extended
def test_synthetic_pairs_are_those_of_one_machine(tmp_path: Path, address: str) -> None:
    size = ("-n", 5, "--height", 32, "--width", 48, "--max-disparity", 16)
    run("data", "synthesize", "-o", tmp_path / "one", "-j", 1, *size)
    for output in (tmp_path / "many", f"local://{tmp_path}/url"):
        done = run("data", "synthesize", "-o", output, "--ray", address, *size)
        assert done.exit_code == 0, done.output
        with pytest.raises(AanetError, match="already exists; choose another output"):
            run("data", "synthesize", "-o", output, "--ray", address, *size)
    whole = files(tmp_path / "one")
    assert len(whole) == 20
    assert files(tmp_path / "many") == files(tmp_path / "url") == whole


@pytest.mark.extended
def test_an_evaluation_has_the_same_tables(tmp_path: Path, address: str) -> None:
    run("data", "synthesize", "-n", 6, "--height", 48, "--width", 96, "--max-disparity", 16, "-o", tmp_path)
    words = ("evaluate", "sceneflow", tmp_path, "--split", "train", "--model", "sgbm", "--max-disparity", 16)
    plain = json.loads(run(*words, "--json", "-o", tmp_path / "plain").stdout)
    done = json.loads(run(*words, "--json", "-o", tmp_path / "ray", "--ray", address).stdout)
    for facts in (plain, done):
        for result in facts["results"]:
            result["seconds_per_pair"] = 0
            result["origin"]["threads"] = None
            for pair in result["pairs"]:
                pair["seconds"] = 0
    assert done == plain
    pictures = [files(tmp_path / each / "pictures") for each in ("plain", "ray")]
    assert pictures[0] == pictures[1]
    assert len(pictures[0]) == 4


@pytest.mark.extended
def test_the_benchmark_measures_and_computes(address: str) -> None:
    words = ("benchmark", "sgbm", "--ray", address, "--height", 96, "--width", 160, "--rounds", 1)
    facts = json.loads(run(*words, "--json").stdout)
    assert [each["workers"] for each in facts["ray"]] == [1, 2]
    assert facts["plain"]["pair_seconds"] > 0
    assert facts["overhead"] == facts["ray"][0]["pair_seconds"] / facts["plain"]["pair_seconds"] - 1
    assert facts["measured"]["read_bytes"] > 1000
    assert 10 < facts["measured"]["manifest_bytes"] < 1000  # rows that differ, as in a long run
    assert [each["hosts"] for each in facts["million"]] == [1, 10, 100]
