"""Hostile files: the size of an image is found with little work, or not at all; never on the event loop."""

from __future__ import annotations

import io
import threading
from typing import Any

import numpy as np
import PIL.Image
import pytest

from aanet.web import service, uploads
from aanet.web.errors import ServiceError
from aanet.web.uploads import read_pair
from helpers.asgi import IN_PROCESS, post
from helpers.hostile import NO_SIZE


@pytest.mark.parametrize("kind", NO_SIZE)
def test_a_size_that_does_not_appear_is_not_searched_for(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    class Counted(uploads._Header):
        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            read.append(len(data))
            return data

    monkeypatch.setattr(uploads, "_Header", Counted)
    with pytest.raises(ServiceError) as refusal:
        read_pair({"left": NO_SIZE[kind], "right": NO_SIZE[kind]}, 10**9)
    assert refusal.value.code == "not_an_image"
    assert len(read) < 20_000
    assert sum(read) < 2_000_000


@pytest.mark.parametrize("kind", uploads.IMAGE_KINDS)
def test_the_size_of_a_large_image_is_found(kind: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (700, 900, 3), dtype=np.uint8)
    file = io.BytesIO()
    PIL.Image.fromarray(noise).save(file, kind, **({"lossless": True, "method": 0} if kind == "WEBP" else {}))
    data = file.getvalue()
    pair = read_pair({"left": data, "right": data}, 10**6)
    assert (pair.width, pair.height) == (900, 700)


def test_uploads_are_read_once_and_not_on_the_loop(
    small_pair: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def counted(*arguments: Any) -> Any:
        threads.append(threading.current_thread().name)
        return read_pair(*arguments)

    monkeypatch.setattr(service, "read_pair", counted)
    assert post(IN_PROCESS, small_pair).status_code == 200
    (thread,) = threads
    assert thread.startswith("uploads")
