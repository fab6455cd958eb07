"""Building blocks of objects: sheets, boxes, standing outlines, decals and shadows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from aanet.synthetic import shapes
from aanet.synthetic.library import flat
from aanet.synthetic.materials import Materials
from aanet.synthetic.placement import Extent, Facet, Material, Points, ReliefMaker, join, split_like
from aanet.synthetic.scene_builder import SceneBuilder
from aanet.synthetic.shapes import Contour
from aanet.synthetic.surfaces import Dome, Folds, Plane, Relief

SLOPE = 0.6  # disparity per pixel that a relief may reach
_CORNERS = np.array([[i, j, k] for k in (0, 1) for j in (0, 1) for i in (0, 1)], np.float64)
# Corners of each face; in camera coordinates, with y down, its first edge × its last one points outward.
_FACES = np.array([[0, 1, 3, 2], [5, 4, 6, 7], [4, 0, 2, 6], [1, 5, 7, 3], [2, 3, 7, 6], [4, 5, 1, 0]])


def _middle(plane: Plane, extent: Extent) -> tuple[float, float, float]:
    """Center of a facet and the disparity of its plane there."""
    x, y = (extent[0] + extent[2]) / 2, (extent[1] + extent[3]) / 2
    return x, y, max(plane.a * x + plane.b * y + plane.c, 0.0)


@dataclass(frozen=True)
class _DomeMaker:
    """Domes as deep as they are wide: the height is disparity × (radius in pixels / focal length)."""

    focal: float
    cylinder: bool

    def __call__(self, plane: Plane, extent: Extent) -> Relief:
        x, y, disparity = _middle(plane, extent)
        rx = max((extent[2] - extent[0]) / 2, 1.0)
        ry = 1e6 if self.cylinder else max((extent[3] - extent[1]) / 2, 1.0)
        limit = max(Dome.steepest_height(min(rx, ry), SLOPE - abs(plane.a)), 0.0)
        return Dome(x, y, rx, ry, min(disparity * self.swell(extent), limit))

    def swell(self, extent: Extent) -> float:
        return min(float(extent[2] - extent[0]) / 2 / self.focal, 0.5)


@dataclass(frozen=True)
class _FoldsMaker:
    """A few waves of given lengths, with heights proportional to their lengths (`strength`)."""

    focal: float
    strength: float
    lengths: Points
    directions: Points
    phases: Points
    shares: Points

    def __call__(self, plane: Plane, extent: Extent) -> Relief:
        _, _, disparity = _middle(plane, extent)
        k = 2 * np.pi / self.lengths
        steepest = max(SLOPE - abs(plane.a), 0.0) / k
        height = np.minimum(self.strength * disparity * self.lengths / self.focal, steepest) * self.shares
        return Folds(
            np.stack([height, k * np.cos(self.directions), k * np.sin(self.directions), self.phases], 1)
        )

    def swell(self, _extent: Extent) -> float:
        return float((self.strength * self.lengths * self.shares).sum()) / self.focal


@dataclass
class Props:
    """Makes objects in world coordinates and adds them to a scene builder."""

    builder: SceneBuilder
    materials: Materials

    @property
    def rng(self) -> np.random.Generator:
        """The scene's random generator."""
        return self.builder.rng

    def sheet(self, corners: list[tuple[float, float, float]], material: Material, group: int = -1) -> Facet:
        """A polygon given by world points."""
        return Facet([self.builder.view.to_camera(np.array(corners))], material, group)

    def upright(
        self, contours: list[Contour], at: tuple[float, float, float], yaw: float, lean: float = 0.0
    ) -> list[Points]:
        """Contours (u, v) standing at a world point, turned by `yaw` and leaning back by `lean`."""
        x, y, z = at
        u, v = join(contours).T
        back, up = v * math.sin(lean), v * math.cos(lean)
        cos, sin = math.cos(yaw), math.sin(yaw)
        world = np.stack([x + u * cos - back * sin, y + up, z + u * sin + back * cos], 1)
        return split_like(self.builder.view.to_camera(world), contours)

    def facing(self, x: float, z: float) -> float:
        """The yaw at which something at (x, z) faces the camera."""
        return -math.atan2(x, z)

    def shadow(self, x: float, z: float, rx: float, rz: float) -> Facet:
        """A soft dark patch on the floor under an object."""
        light = self.builder.light
        outline = shapes.ellipse(rx * 1.25, rz * 1.25, x - 0.3 * rx * light[0], z + 0.15 * rz)
        world = np.stack([outline[:, 0], np.zeros(len(outline)), outline[:, 1]], 1)
        distance = max(float(np.hypot(x, z)), 0.3)
        blur = float(np.clip(0.25 * self.builder.view.focal * min(rx, rz) / distance, 1.0, 9.0))
        opacity = self.rng.uniform(0.25, 0.65)
        patch = [self.builder.view.to_camera(world)]
        return Facet(patch, Material(flat((0, 0, 0))), decal=True, opacity=opacity, blur=blur)

    def dome(self, cylinder: bool) -> ReliefMaker:
        """The relief of a ball or an upright cylinder as wide as the facet."""
        return _DomeMaker(self.builder.view.focal, cylinder)

    def folds(self, strength: float, vertical: bool) -> ReliefMaker:
        """The relief of cloth: waves, mostly across the width if `vertical`."""
        count = int(self.rng.integers(2, 4))
        lengths = self.rng.uniform(35, 160, count)
        spread = self.rng.normal(0.0, 0.25 if vertical else 1.5, count)
        phases, shares = self.rng.uniform(0, 7, count), self.rng.dirichlet(np.ones(count))
        return _FoldsMaker(self.builder.view.focal, strength, lengths, spread, phases, shares)

    def box(
        self,
        at: tuple[float, float, float],
        size: tuple[float, float, float],
        yaw: float,
        material: Material,
        front: Material | None = None,
        top: tuple[float, float] = (1.0, 1.0),
    ) -> list[Facet]:
        """The faces of a box that the camera sees; `at`: center of the base, `size`: width, height, depth.

        `top`: width and depth of the top relative to those of the base.
        """
        local = (_CORNERS - (0.5, 0.0, 0.5)) * size
        local[_CORNERS[:, 1] == 1] *= (top[0], 1.0, top[1])
        cos, sin = math.cos(yaw), math.sin(yaw)
        turned = np.stack(
            [local[:, 0] * cos - local[:, 2] * sin, local[:, 1], local[:, 0] * sin + local[:, 2] * cos], 1
        )
        camera = self.builder.view.to_camera(turned + at)
        corner, right, up = (camera[_FACES[:, k]] for k in (0, 1, 3))
        seen = (np.cross(right - corner, up - corner) * corner).sum(axis=1) < 0
        group = self.builder.new_group()
        faces = []
        for number in np.flatnonzero(seen).tolist():
            chosen = front if front is not None and number == 0 else material
            faces.append(Facet([camera[_FACES[number]]], chosen, group))
        return faces

    def standing(
        self,
        contours: list[Contour],
        at: tuple[float, float, float],
        material: Material,
        relief: ReliefMaker | None = None,
        yaw: float | None = None,
        lean: float = 0.0,
    ) -> Facet:
        """An upright flat or curved object, facing the camera unless `yaw` is given."""
        yaw = self.facing(at[0], at[2]) if yaw is None else yaw
        return Facet(self.upright(contours, at, yaw, lean), material, relief=relief)

    def add(self, thing: list[Facet], floor: int | None = None, shadow: Facet | None = None) -> None:
        """Add an object to the scene, and its shadow to the sheet number `floor` of the background."""
        self.builder.objects.append(thing)
        if floor is not None and shadow is not None:
            self.builder.background[floor].append(shadow)

    def decal(self, facet: Facet, parts: list[Contour], material: Material) -> Facet:
        """Shapes on a four-cornered facet, in coordinates 0..1 along its first edge and its last one."""
        low, low_end, high_end, high = facet.contours[0]
        points = [
            (1 - v) * ((1 - u) * low + u * low_end) + v * ((1 - u) * high + u * high_end)
            for u, v in ((c[:, :1], c[:, 1:]) for c in parts)
        ]
        return replace(facet, contours=points, material=material, decal=True, relief=None)
