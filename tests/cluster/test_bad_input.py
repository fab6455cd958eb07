"""What is wrong with a cluster, a list or an output is one sentence, before any work."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aanet.cluster import benchmark, session
from aanet.cluster.work_list import open_list
from aanet.errors import AanetError, InputError, ReadError, UnsupportedError
from helpers.ray_cluster import ray_cluster
from helpers.ray_runs import SGBM, put_pairs, run

pytest.importorskip("ray", reason="Ray is not installed; it is in the extra cluster")
pytestmark = [
    pytest.mark.usefixtures("ends_by_itself"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def listener() -> Iterator[str]:
    """A server that never says anything."""
    with socket.create_server(("127.0.0.2", 0)) as server:
        yield f"127.0.0.2:{server.getsockname()[1]}"


def test_an_unreachable_cluster_is_one_sentence(
    tmp_path: Path, listener: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_CONNECT_SECONDS", 0.5)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with socket.create_server(("127.0.0.2", 0)) as closed:
        nobody = f"127.0.0.2:{closed.getsockname()[1]}"
    table = put_pairs(tmp_path, 2)
    for address, message in (
        (nobody, "cannot be reached: connection refused"),
        (listener, "is not a Ray cluster"),
        ("ray://head:10001", "A Ray cluster is auto, local or HOST:PORT"),
        ("head", "A Ray cluster is auto, local or HOST:PORT"),
        ("127.0.0.1:99999", "A Ray cluster is auto, local or HOST:PORT"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            run("predict", table, "-o", tmp_path / "out", *SGBM, "--ray", address)
        assert "\n" not in str(caught.value)
    assert not list(tmp_path.glob("out/manifest/*"))
    monkeypatch.setattr(benchmark, "_plain", None)  # nothing may be measured first
    with pytest.raises(InputError, match="cannot be reached: connection refused"):
        run("benchmark", "sgbm", "--ray", nobody)


class Forbidden:
    """A file system that refuses everybody, as a bucket without permission."""

    protocol = "forbidden"
    cachable = False

    def __getattr__(self, name: str) -> Any:
        def refuse(*_: Any, **__: Any) -> Any:
            raise PermissionError(13, "Access Denied")

        return refuse


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (
            b"first,right\na.png,b.png\n",
            "pairs.csv",
            "must name the columns left and right; got 'first, right'",
        ),
        (b"left,right\n", "pairs.csv", "The list has no pairs"),
        (b"left,right\na.png\n", "pairs.csv", "line 2: expected a left and a right file"),
        (b"PAR1 no", "pairs.parquet", "is not a readable Parquet file"),
        (b"", "pairs.parquet", "is not a readable Parquet file"),
        (None, "pairs.csv", "no such file or directory"),
        (None, "pairs.parquet", "no such file or directory"),
    ],
)
def test_a_list_that_cannot_be_used_is_one_sentence(
    tmp_path: Path, content: bytes | None, name: str, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ReadError, match=message) as caught:
        run("predict", tmp_path / name, "-o", tmp_path / "out", *SGBM, "--ray", "auto")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_parquet_file_without_a_column_is_one_sentence(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"left": ["a.png"]}), tmp_path / "pairs.parquet")
    with pytest.raises(ReadError, match="must name the columns left and right; got 'left'"):
        open_list(str(tmp_path / "pairs.parquet"))


def test_a_url_without_permission_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aanet.io.storage.url_filesystem", lambda place: (Forbidden(), place))
    with pytest.raises(ReadError, match=r"Cannot read forbidden://bucket/pairs.csv: permission denied\."):
        open_list("forbidden://bucket/pairs.csv")
    table = put_pairs(tmp_path, 2)
    with pytest.raises(AanetError, match=r"forbidden://bucket/out/manifest/job.json: permission denied\."):
        run("predict", table, "-o", "forbidden://bucket/out", *SGBM, "--ray", "auto")


def test_options_of_one_machine_do_not_go_with_a_cluster(tmp_path: Path) -> None:
    table = put_pairs(tmp_path, 2)
    with pytest.raises(InputError, match="--shard and --range all cannot be combined with --ray"):
        run("predict", table, "--ray", "auto", "--shard", "1/2", "--range", "all")
    with pytest.raises(InputError, match="s3://bucket is a URL; without --ray, the output is a folder"):
        run("predict", table, "-o", "s3://bucket", *SGBM)


@pytest.mark.slow
def test_versions_must_be_the_same_and_no_statistics_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)
    ray = session.start_quietly()
    from ray._common.usage import usage_lib

    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert not usage_lib.usage_stats_enabled()
    with ray_cluster(1) as cluster:
        with session.session(cluster.address) as found:
            assert (found.cpus, found.nodes) == (1, 1)
            seen = ray.remote(lambda: os.environ.get("RAY_USAGE_STATS_ENABLED")).remote()
            assert ray.get(seen) == "0"
        assert not ray.is_initialized()
        monkeypatch.setattr(session, "__version__", "99.0")
        with (
            pytest.raises(UnsupportedError, match=r"The node .* has aanet .*; this process has 99\.0\."),
            session.session(cluster.address),
        ):
            pass
        assert not ray.is_initialized()
