"""The synthetic dataset: procedural stereo pairs without a download."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import cv2
import numpy as np

from aanet.data.sample import StereoSample
from aanet.errors import InputError
from aanet.synthetic.camera_effects import DARK, NOISE_LENGTH, draw_cameras, expose
from aanet.synthetic.heap import keep_freed_memory
from aanet.synthetic.library import Cache, TextureLibrary
from aanet.synthetic.photo import photo_scene
from aanet.synthetic.render import render_scene
from aanet.synthetic.scenes import corridor, flying, room, street, studio, table_top
from aanet.synthetic.surfaces import Scene

SceneMaker = Callable[[np.random.Generator, TextureLibrary, tuple[int, int], float], Scene]
SCENE_KINDS: dict[str, SceneMaker] = {
    "room": room,
    "street": street,
    "corridor": corridor,
    "table_top": table_top,
    "studio": studio,
    "flying": flying,
    "photo": photo_scene,
}
KIND_WEIGHTS: dict[str, float] = {
    "room": 2,
    "street": 2,
    "corridor": 0.7,
    "table_top": 2.5,
    "studio": 1.5,
    "flying": 0.8,
    "photo": 2.7,
}
DARK_KINDS = {"corridor": 0.5}  # the share of dark pairs, where it is not the usual one: tunnels
WHITE = 255.0
SMALLEST_SIDE = 32
MAX_DISPARITY_RANGE = (8, 1024)


def prepare_worker(_worker: int = 0) -> None:
    """Prepare a worker process for rendering; for `worker_init_fn` of a DataLoader.

    Disables OpenCV's threads, because the workers already share the cores (0, not 1: 1 would wait for the
    parent's threads, which a forked process does not have), and keeps freed memory in the process.
    """
    cv2.setNumThreads(0)
    keep_freed_memory()


class SyntheticWorld:
    """Stereo pairs with exact ground truth, rendered on access; pair `i` depends only on the seed and `i`.

    Args:
        size: Height and width of the views.
        max_disparity: Upper limit of all disparities.
        seed: Selects a different set of scenes.
        textures: A folder of photographs; by default, all textures are generated.
        length: The number of pairs; any length is possible.
        kinds: Relative frequency of each kind of scene; `KIND_WEIGHTS` by default.
    """

    name = "synthetic"

    def __init__(
        self,
        size: tuple[int, int] = (288, 576),
        max_disparity: int = 192,
        seed: int = 0,
        textures: Path | str | None = None,
        length: int = 10_000,
        kinds: Mapping[str, float] | None = None,
    ) -> None:
        weights = dict(KIND_WEIGHTS if kinds is None else kinds)
        _check(size, max_disparity, seed, length, weights)
        self.size = (int(size[0]), int(size[1]))
        self.max_disparity, self.seed, self.length = int(max_disparity), int(seed), int(length)
        self.kinds = tuple(weights)
        total = sum(weights.values())
        self.chances = tuple(weight / total for weight in weights.values())
        self.library = TextureLibrary(self.seed, None if textures is None else Path(textures))
        self._noise = Cache(1)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> StereoSample:
        if not 0 <= index < self.length:
            raise IndexError(f"There is no pair {index} of {self.length}.")  # ends iteration
        rng = self._generator(0, index)
        scene = self._scene(rng)
        clean = render_scene(scene)
        brightness = float(np.minimum(clean.left[::4, ::4], WHITE).mean())
        left, right = draw_cameras(rng, brightness, DARK_KINDS.get(scene.kind, DARK))
        noise = self._noise.get("normals", self._make_noise)
        return StereoSample(
            name=f"{self.name}/{self.seed}/{index:06d}-{scene.kind}",
            left=expose(clean.left, left, noise, rng),
            right=expose(clean.right, right, noise, rng),
            disparity=clean.disparity,
            valid=np.ones(self.size, bool),
            visible=clean.visible,
            right_disparity=clean.right_disparity,
            right_visible=clean.right_visible,
        )

    def scene(self, index: int) -> Scene:
        """Return the scene of pair `index`, for rendering without camera effects."""
        return self._scene(self._generator(0, index))

    def _scene(self, rng: np.random.Generator) -> Scene:
        kind = self.kinds[int(rng.choice(len(self.kinds), p=self.chances))]
        return SCENE_KINDS[kind](rng, self.library, self.size, self._nearest_disparity(rng))

    def _nearest_disparity(self, rng: np.random.Generator) -> float:
        """Draw the maximum disparity of a scene: mostly 30 to 100 px, as in real data, at most the limit."""
        limit = min(0.98 * self.max_disparity, 0.6 * self.size[1])
        middle = min(100.0, limit)
        chance, position = rng.random(), rng.random()
        if chance < 0.12:
            return float(middle * (0.12 + 0.18 * position))
        if chance < 0.82:
            return float(middle * 0.3 ** (1.0 - position))
        return float(limit - (limit - middle) * position**1.5)

    def _generator(self, *key: int) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=key)))

    def _make_noise(self) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        """Draw normal samples for all pairs; drawing them per pair would take as long as rendering."""
        return self._generator(2).standard_normal(NOISE_LENGTH, np.float32)


def _check(
    size: tuple[int, int], max_disparity: int, seed: int, length: int, weights: Mapping[str, float]
) -> None:
    if len(size) != 2 or min(size) < SMALLEST_SIDE:
        raise InputError(f"Expected a size of at least {SMALLEST_SIDE}×{SMALLEST_SIDE}, but got {size}.")
    least, most = MAX_DISPARITY_RANGE
    if not least <= max_disparity <= most:
        raise InputError(f"Expected a maximum disparity from {least} to {most}, but got {max_disparity}.")
    if seed < 0 or length < 1:
        raise InputError(f"Expected a seed >= 0 and a length >= 1, but got {seed} and {length}.")
    unknown = sorted(set(weights) - set(SCENE_KINDS))
    if unknown:
        raise InputError(
            f"Expected kinds of scenes among {', '.join(SCENE_KINDS)}, but got {', '.join(unknown)}."
        )
    if not weights or min(weights.values()) < 0 or sum(weights.values()) <= 0:
        raise InputError(f"Expected non-negative weights with a positive sum, but got {dict(weights)}.")
