"""The textures of a scene: generated tiles, photographs from a folder, flat colors."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import cv2
import numpy as np

from aanet.errors import InputError, ReadError
from aanet.io.images import IMAGE_SUFFIXES, as_rgb8, read_image
from aanet.synthetic.surfaces import Texture
from aanet.synthetic.textures import GENERATORS
from aanet.typing import Image

LARGEST_PHOTO = 640  # px of the longer side; views cannot show more detail
SMALLEST_PHOTO = 32
VARIANTS = 8  # tiles of each generator
T = TypeVar("T")


class Cache:
    """A small thread-safe LRU cache; a copy in another process starts empty."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._items: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the item of `key`, creating it if it is missing."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
                found: T = self._items[key]
                return found
        made = make()  # outside the lock: if two threads create it, both results are equal
        with self._lock:
            self._items[key] = made
            while len(self._items) > self.capacity:
                self._items.popitem(last=False)
        return made

    def __getstate__(self) -> int:
        return self.capacity

    def __setstate__(self, capacity: int) -> None:
        self.capacity = capacity
        self._items = OrderedDict()
        self._lock = Lock()


class TextureLibrary:
    """Generated textures of one seed and, optionally, the photographs of a folder, loaded lazily."""

    def __init__(self, seed: int, photographs: Path | None = None) -> None:
        self.seed = seed
        self.photographs: tuple[Path, ...] = () if photographs is None else find_photographs(photographs)
        self._tiles = Cache(len(GENERATORS) * VARIANTS)
        self._photos = Cache(192)

    def tile(self, generator: str, variant: int) -> Texture:
        """Return the tile with number `variant` of one of the `GENERATORS`."""
        return self._tiles.get((generator, variant), lambda: self._make_tile(generator, variant))

    def _make_tile(self, generator: str, variant: int) -> Texture:
        number = list(GENERATORS).index(generator) * VARIANTS + variant
        sequence = np.random.SeedSequence(self.seed, spawn_key=(1, number))
        rng = np.random.Generator(np.random.PCG64(sequence))
        return as_texture(GENERATORS[generator](rng))

    def photograph(self, number: int) -> Texture:
        """Return a photograph of the folder."""
        return self._photos.get(number, lambda: as_texture(read_photograph(self.photographs[number])))

    def derived(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return data derived from a photograph, such as its segments, from the cache."""
        return self._photos.get(key, make)


def flat(color: tuple[float, float, float]) -> Texture:
    """Return a texture of one color in 0..1."""
    pixel = np.clip((*color, 1.0), 0.0, 1.0) * 255.0
    return Texture(pixel.astype(np.uint8)[None, None])


def as_texture(image: Image) -> Texture:
    """Make a texture from an RGB image."""
    return Texture(np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2RGBA), np.uint8))


def find_photographs(folder: Path) -> tuple[Path, ...]:
    """Return the image files below a folder, sorted."""
    if not folder.is_dir():
        raise ReadError(f"The folder of photographs {folder} does not exist.")
    found = sorted(p for p in folder.rglob("*") if p.suffix.lower() in IMAGE_SUFFIXES)
    if not found:
        raise ReadError(f"The folder {folder} contains no photographs (JPEG, PNG, ...).")
    return tuple(found)


def read_photograph(path: Path) -> Image:
    """Read a photograph as RGB, downscaled to at most `LARGEST_PHOTO`."""
    photo = as_rgb8(read_image(path))
    if min(photo.shape[:2]) < SMALLEST_PHOTO:
        raise InputError(
            f"{path} is {photo.shape[0]}×{photo.shape[1]}; expected at least {SMALLEST_PHOTO} px."
        )
    scale = LARGEST_PHOTO / max(photo.shape[:2])
    if scale < 1:
        reduced = cv2.resize(photo, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        photo = np.asarray(reduced, np.uint8)
    return photo
