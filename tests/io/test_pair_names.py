from __future__ import annotations

from pathlib import Path

import pytest

from aanet.errors import InputError, ReadError, WriteError
from aanet.io import storage
from aanet.io.pair_names import Naming, naming_of


def names(*lefts: str) -> list[str]:
    naming = naming_of(lefts)
    return [naming.name(place, left) for place, left in enumerate(lefts)]


def test_the_shortest_part_that_tells_pairs_apart_is_the_name() -> None:
    assert names("/a/1.png", "/b/2.png") == ["1", "2"]
    assert names("/a/x/1.png", "/a/y/1.png") == ["x/1", "y/1"]
    assert names("/a/1.png", "/a/1.jpg", "/a/2.png") == ["000000_1", "000001_1", "000002_2"]
    assert names("/a/b/../1.png", "/a/b/1.png") == ["1", "b/1"]


def test_a_name_never_leads_out_of_the_output_folder() -> None:
    for name in names("../../1.png", "../1.png", "1.png"):
        assert ".." not in Path(name).parts
        assert not Path(name).is_absolute()


def test_only_digests_are_kept() -> None:
    assert naming_of(f"/data/{number}.png" for number in range(1000)) == Naming("stem")


def test_places(tmp_path: Path) -> None:
    assert storage.local_path("a/b") == Path("a/b")
    assert storage.local_path("file:///a/b%20c") == Path("/a/b c")
    assert storage.local_path("s3://bucket/a") is None
    assert storage.join("s3://bucket/lists", "l/0.png") == "s3://bucket/lists/l/0.png"
    assert storage.join("/lists", "s3://bucket/0.png") == "s3://bucket/0.png"
    assert storage.join("/lists", "0.png") == "/lists/0.png"
    assert storage.parent("s3://bucket/lists/pairs.csv") == "s3://bucket/lists"
    with pytest.raises(InputError, match="names another computer"):
        storage.local_path("file://host/a")
    assert isinstance(storage.open_storage(f"file://{tmp_path}"), storage.Folder)


def test_a_url_is_read_and_written_like_a_folder(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    bucket = storage.open_storage(f"local://{tmp_path}/out")  # through fsspec, as any URL
    assert isinstance(bucket, storage.Bucket)
    bucket.write_together({"a/b.png": b"one", "c.png": b"two"}, overwrite=False)
    assert (tmp_path / "out/a/b.png").read_bytes() == b"one"
    assert bucket.exists("c.png")
    assert storage.read_bytes(bucket.location("a/b.png"), "an image", 3) == b"one"
    with pytest.raises(WriteError, match=r"c.png already exists"):
        bucket.write_together({"d.png": b"x", "c.png": b"x"}, overwrite=False)
    assert not bucket.exists("d.png")


@pytest.mark.parametrize(
    ("place", "kind", "message"),
    [
        ("local://{root}/missing.png", ReadError, "missing.png does not exist"),
        ("local://{root}/large.png", ReadError, "may have at most"),
        ("local://{root}/empty.png", ReadError, "is empty"),
        ("nosuch://bucket/a.png", InputError, "Cannot open nosuch://bucket/a.png: Protocol not known"),
        ("simplecache::local://a.png", InputError, "a chain of URLs"),
    ],
)
def test_a_url_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, place: str, kind: type[Exception], message: str
) -> None:
    pytest.importorskip("fsspec")
    (tmp_path / "large.png").write_bytes(bytes(11))
    (tmp_path / "empty.png").write_bytes(b"")
    with pytest.raises(kind, match=message) as caught:
        storage.read_bytes(place.format(root=tmp_path), "an image", 10)
    assert "\n" not in str(caught.value)
