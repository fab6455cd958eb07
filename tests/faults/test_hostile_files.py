"""Small files that would fill the memory or run code, and data that training cannot use."""

from __future__ import annotations

import struct
import tracemalloc
import warnings
import zlib
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from rich.console import Console

from aanet.engines.exported import open_exported
from aanet.errors import AanetError, ReadError
from aanet.io.disparity import write_disparity
from aanet.io.images import read_image
from aanet.models.weights import checkpoint, official
from aanet.training.recipe import load_recipe
from aanet.training.trainer import Trainer
from helpers.crash_scenarios import pair_of_files, put_training_data


class Calls:
    """Calls a function when it is unpickled."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


def test_a_checkpoint_cannot_reserve_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.pth"
    for legacy in (False, True):
        content = {"state_dict": Calls(bytearray, 200_000_000)}
        torch.save(content, path, _use_new_zipfile_serialization=not legacy)
        assert path.stat().st_size < 2000
        tracemalloc.start()
        with pytest.raises(ReadError, match="contains objects other than weights"):
            checkpoint.read(path)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
        tracemalloc.stop()


def test_weights_that_only_seem_to_have_values_are_refused(tmp_path: Path) -> None:
    """Tensors without memory of their own, of the right shapes or enormous."""
    layout = official.layout_of("stereonet_aa", 48, training_heads=False)
    whole = {key: torch.zeros(shape) for key, shape in layout.shapes.items()}
    key = max(whole, key=lambda name: whole[name].dim())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # quantized tensors are deprecated
        quantized = torch.quantize_per_tensor(whole[key], 1.0, 0, torch.qint8)
    without_values = torch.zeros(whole[key].shape, device="meta")
    for value in (whole[key].to_sparse(), without_values, torch.ones(1).expand(10**10), quantized):
        torch.save({**whole, key: value}, tmp_path / "odd.pth")
        with pytest.raises(ReadError):
            checkpoint.load(tmp_path / "odd.pth")


def png_chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def test_a_small_file_of_a_huge_image_is_refused_from_its_header(tmp_path: Path) -> None:
    header = struct.pack(">IIBBBBB", 20_000, 20_000, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(60_001) * 1000, 9)  # a twentieth of it, in a few kilobytes
    chunks = (png_chunk(b"IHDR", header), png_chunk(b"IDAT", rows), png_chunk(b"IEND", b""))
    (tmp_path / "huge.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
    (tmp_path / "huge.ppm").write_bytes(b"P6\n20000 20000\n255\n" + bytes(1000))
    (tmp_path / "huge.bmp").write_bytes(
        struct.pack("<2sIHHIIiiHH", b"BM", 1054, 0, 0, 54, 40, 20_000, 20_000, 1, 24) + bytes(1000)
    )
    for path in tmp_path.iterdir():
        with pytest.raises(ReadError, match=r"has 20000×20000 pixels; .* at most 268 megapixels"):
            read_image(path)


HOSTILE_XML = {
    "an unknown operator": (b'type="Multiply" version="opset1"', b'type="Evil" version="extension"'),
    "an operator of a library": (b'version="opset1"', b'version="LIBRARY"'),
    "a library as an attribute": (b"<net ", b'<net extension="LIBRARY" extensions="LIBRARY" '),
    "an operator of a framework": (
        b'type="Multiply" version="opset1"',
        b'type="FrameworkNode" version="framework"',
    ),
    "an external entity": (
        b'<?xml version="1.0"?>',
        b'<?xml version="1.0"?><!DOCTYPE net [<!ENTITY e SYSTEM "file://LIBRARY">]>',
    ),
}


@pytest.mark.parametrize("change", HOSTILE_XML)
def test_no_library_is_loaded_from_a_model_file(tmp_path: Path, change: str) -> None:
    path, opened = pair_of_files(tmp_path, 1.0), []
    library = tmp_path / "evil.so"
    library.write_bytes(b"\x7fELF")
    found, put = (part.replace(b"LIBRARY", str(library).encode()) for part in HOSTILE_XML[change])
    content = path.read_bytes()
    assert found in content
    path.write_bytes(content.replace(found, put))
    before = _libraries()
    image = np.zeros((1, 3, 24, 24), np.float32)
    try:
        open_exported(path)(image, image)
    except AanetError as error:
        opened.append(str(error))
    assert len(opened) == 1  # the model takes one image, so that none of them can be used
    assert "\n" not in opened[0]
    assert not any(str(tmp_path) in line for line in _libraries() - before)


def _libraries() -> set[str]:
    maps = Path("/proc/self/maps")
    return set(maps.read_text().splitlines()) if maps.exists() else set()


def spoil_truth(folder: Path, value: float) -> None:
    for number in range(2):
        write_disparity(folder / f"disparity/{number}.pfm", np.full((24, 56), value, np.float32))


def spoil_size(folder: Path) -> None:
    write_disparity(folder / "disparity/0.pfm", np.ones((12, 56), np.float32))
    write_disparity(folder / "disparity/1.pfm", np.ones((12, 56), np.float32))


def spoil_image(folder: Path) -> None:
    for number in range(2):
        (folder / f"left/{number}.png").unlink()
        image = np.full((24, 56, 3), np.nan, np.float32)
        cv2.imwrite(str(folder / f"left/{number}.tiff"), image)


def cut_image(folder: Path) -> None:
    for path in folder.glob("right/*.png"):
        path.write_bytes(path.read_bytes()[:-40])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (spoil_size, "the disparity map is 12×56, but the images are 24×56"),
        (spoil_image, "Expected a float image with values in 0..1; got nan to nan"),
        (cut_image, "is damaged: the image data is truncated"),
    ],
)
def test_data_that_training_cannot_use_is_one_sentence(tmp_path: Path, spoil: Any, words: str) -> None:
    with pytest.raises(AanetError, match=words) as caught:
        train_on(tmp_path, spoil)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("value", [np.nan, np.inf, -5.0, 1e30, 23.999])
def test_unusable_ground_truth_leaves_the_weights_finite(tmp_path: Path, value: float) -> None:
    trainer = train_on(tmp_path, lambda folder: spoil_truth(folder, value))
    assert trainer.skipped == 0
    for name, weight in trainer.network.state_dict().items():
        assert torch.isfinite(weight).all(), name


def train_on(tmp_path: Path, spoil: Any) -> Trainer:
    start = tmp_path / "start"
    put_training_data(start)
    spoil(start / "pairs")
    (tmp_path / "work").symlink_to(start)  # where the recipe looks for its data
    trainer = Trainer(load_recipe(start / "recipe.toml"), None, Console(quiet=True))
    trainer.run(steps_per_stage=2)
    return trainer
