"""Materials of walls, floors, streets and objects."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

import numpy as np

from aanet.synthetic.library import VARIANTS, TextureLibrary, flat
from aanet.synthetic.placement import Material
from aanet.synthetic.surfaces import Texture
from aanet.synthetic.textures import hue_color

PHOTOGRAPHS_PER_SCENE = 2  # decoding takes a large part of the time of a scene

# Relative frequency of the textures of each kind of surface. Walls are mostly textureless, as in real rooms.
ROLES: dict[str, dict[str, float]] = {
    "wall": {
        "plain": 6,
        "clouds": 1,
        "bricks": 1,
        "stripes": 1,
        "dots": 1,
        "photo": 2,
        "wood": 1,
        "tiles": 1,
    },
    "floor": {"planks": 4, "tiles": 3, "speckle": 2, "clouds": 1, "weave": 2, "plain": 1, "wood": 1},
    "table": {"wood": 4, "plain": 3, "clouds": 1, "weave": 1, "planks": 1, "stripes": 1, "photo": 1},
    "road": {"speckle": 5, "cobbles": 2, "clouds": 2, "plain": 1},
    "verge": {"grass": 3, "cobbles": 2, "speckle": 2, "tiles": 2},
    "facade": {"facade": 6, "bricks": 2, "photo": 2, "plain": 1},
    "sky": {"sky": 6, "photo": 1},
    "object": {
        "photo": 7,
        "wood": 2,
        "print": 2,
        "plain": 4,
        "clouds": 1,
        "weave": 1,
        "dots": 1,
        "stripes": 1,
        "dead_leaves": 1,
        "speckle": 1,
        "tiles": 0.5,
        "bricks": 0.5,
    },
    "cloth": {"weave": 3, "stripes": 2, "dots": 3, "photo": 3, "plain": 2},
    "foliage": {"grass": 5, "photo": 2, "dead_leaves": 1, "clouds": 1},
    "leaf": {"plain": 3, "clouds": 2, "speckle": 1},
    "rock": {"clouds": 3, "speckle": 3, "photo": 3, "cobbles": 0.5},
    "paper": {"print": 5, "photo": 5, "plain": 2},
    "furniture": {"wood": 5, "plain": 3, "photo": 1, "weave": 1},
    "bark": {"clouds": 2, "wood": 2, "speckle": 2},
    "bodywork": {"plain": 5, "photo": 1, "clouds": 1},
}
WITHOUT_PHOTOGRAPHS = ("dead_leaves", "clouds", "print")
GLOSS = {"floor": 0.15, "table": 0.25, "object": 0.15, "bodywork": 0.6, "furniture": 0.15, "paper": 0.1}
MIRRORS = {"floor": 0.05, "table": 0.08, "object": 0.05, "bodywork": 0.6, "furniture": 0.05, "glass": 0.85}
# In full sun, so bright that the camera saturates: the share, and the range of how much brighter.
SUNLIT = {"road": 0.1, "verge": 0.15, "facade": 0.12, "bodywork": 0.12, "wall": 0.04}
SUNLIGHT = (1.5, 3.0)
REFLECTED = {"glass": (0.25, 0.95)}  # range of the share of a reflection in the color of a mirroring surface
SURROUNDINGS = {"photo": 3.0, "facade": 2.0, "sky": 2.0, "clouds": 1.0}


def _draw(weights: dict[str, float], chance: float) -> str:
    """Draw a name by weight, given `chance` uniform in 0..1; much faster than NumPy's choice."""
    ends = list(accumulate(weights.values()))
    return list(weights)[min(bisect_right(ends, chance * ends[-1]), len(ends) - 1)]


class Materials:
    """Draws the materials of one scene, which share a few photographs."""

    def __init__(self, library: TextureLibrary, rng: np.random.Generator) -> None:
        self.library, self.rng = library, rng
        count = len(library.photographs)
        self.photographs = rng.integers(count, size=PHOTOGRAPHS_PER_SCENE) if count else None

    def pick(self, role: str) -> Material:
        """Draw a material for a kind of surface."""
        rng, weights = self.rng, ROLES[role]
        name = _draw(weights, rng.random())
        tone = rng.uniform(0.65, 1.15)
        if rng.random() < SUNLIT.get(role, 0.0):
            tone *= rng.uniform(*SUNLIGHT)
        tint = tone * (1.0 + rng.normal(0.0, 0.05, 3))
        gloss = rng.uniform(0.1, 0.5) if rng.random() < GLOSS.get(role, 0.0) else 0.0
        density = float(np.exp(rng.uniform(np.log(0.75), np.log(1.7))))
        angle = rng.uniform(0, 6.28) if role in ("object", "rock", "cloth", "paper") else 0.0
        if role in ("object", "paper") and rng.random() < 0.6:
            angle = 0.0
        mirror = self._mirror(role)
        return Material(self.texture(name), density, (tint[0], tint[1], tint[2]), gloss, angle, mirror)

    def glass(self) -> Material:
        """Draw a dark window, which may reflect its surroundings."""
        return Material(flat((0.06, 0.07, 0.09)), gloss=0.25, mirror=self._mirror("glass"))

    def _mirror(self, role: str) -> tuple[Texture, float] | None:
        if self.rng.random() >= MIRRORS.get(role, 0.0):
            return None
        share = self.rng.uniform(*REFLECTED.get(role, (0.15, 0.6)))
        return self.texture(_draw(SURROUNDINGS, self.rng.random())), float(share)

    def texture(self, name: str) -> Texture:
        """Return a tile by its generator's name, or one of the scene's photographs for "photo"."""
        if name != "photo":
            return self.library.tile(name, int(self.rng.integers(VARIANTS)))
        if self.photographs is None:
            return self.texture(WITHOUT_PHOTOGRAPHS[int(self.rng.integers(len(WITHOUT_PHOTOGRAPHS)))])
        return self.library.photograph(int(self.rng.choice(self.photographs)))

    def paint(self, low: float = 0.05, high: float = 0.95, saturation: float = 0.6) -> Material:
        """Draw a flat color, for thin bars or road markings."""
        r, g, b = (float(c) for c in hue_color(self.rng, saturation, low, high))
        return Material(flat((r, g, b)))

    def lamp(self) -> Material:
        """Draw a light source, many times as bright as what it lights."""
        power = float(np.exp(self.rng.uniform(np.log(10.0), np.log(400.0))))
        return Material(flat((1.0, 0.95, 0.85)), color=(power, power, power))

    def leaf_green(self) -> Material:
        """Draw the material of leaves and stems."""
        base = self.pick("leaf")
        green = self.rng.uniform((0.35, 0.6, 0.2), (0.8, 1.0, 0.45))
        return Material(base.texture, base.density, (green[0], green[1], green[2]))
