"""Things to put into a scene, from a box to a bicycle."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from aanet.data.synthetic import shapes
from aanet.data.synthetic.library import flat
from aanet.data.synthetic.materials import Materials
from aanet.data.synthetic.placement import Extent, Facet, Material, Points, ReliefMaker, cross, split_like
from aanet.data.synthetic.shapes import Contour
from aanet.data.synthetic.stage import Stage
from aanet.data.synthetic.surfaces import Dome, Folds, Plane, Relief

SLOPE = 0.6  # disparity per pixel that a relief may reach
_FACES = np.array([[0, 1, 3, 2], [5, 4, 6, 7], [4, 0, 2, 6], [1, 5, 7, 3], [2, 3, 7, 6], [4, 5, 1, 0]])


@dataclass
class Props:
    """Builds things in world coordinates and puts them on a stage."""

    stage: Stage
    materials: Materials

    @property
    def rng(self) -> np.random.Generator:
        """The scene's random generator."""
        return self.stage.rng

    def sheet(self, corners: list[tuple[float, float, float]], material: Material, group: int = -1) -> Facet:
        """A polygon given by world points."""
        return Facet([self.stage.view.to_camera(np.array(corners))], material, group)

    def upright(
        self, contours: list[Contour], at: tuple[float, float, float], yaw: float, lean: float = 0.0
    ) -> list[Points]:
        """Contours (u, v) standing at a world point, turned by `yaw` and leaning back by `lean`."""
        x, y, z = at
        u, v = np.concatenate(contours).T
        back, up = v * np.sin(lean), v * np.cos(lean)
        world = np.stack(
            [x + u * np.cos(yaw) - back * np.sin(yaw), y + up, z + u * np.sin(yaw) + back * np.cos(yaw)], 1
        )
        return split_like(self.stage.view.to_camera(world), contours)

    def facing(self, x: float, z: float) -> float:
        """The yaw at which something at (x, z) faces the camera."""
        return float(-np.arctan2(x, z))

    def shadow(self, x: float, z: float, rx: float, rz: float, y: float = 0.0) -> Facet:
        """A soft dark patch on the floor under a thing."""
        light = self.stage.light
        outline = shapes.ellipse(rx * 1.25, rz * 1.25, x - 0.3 * rx * light[0], z + 0.15 * rz)
        world = np.stack([outline[:, 0], np.full(len(outline), y), outline[:, 1]], 1)
        distance = max(float(np.hypot(x, z)), 0.3)
        blur = float(np.clip(0.25 * self.stage.view.focal * min(rx, rz) / distance, 1.0, 9.0))
        opacity = self.rng.uniform(0.25, 0.65)
        patch = [self.stage.view.to_camera(world)]
        return Facet(patch, Material(flat((0, 0, 0))), decal=True, opacity=opacity, blur=blur)

    def dome(self, cylinder: bool) -> ReliefMaker:
        """The relief of a ball or an upright cylinder as wide as the facet: it rises by its radius."""
        focal = self.stage.view.focal

        def make(plane: Plane, extent: Extent) -> Relief:
            x0, y0, x1, y1 = extent
            x, y, rx, ry = (x0 + x1) / 2, (y0 + y1) / 2, (x1 - x0) / 2, (y1 - y0) / 2
            rx, ry = max(rx, 1.0), 1e6 if cylinder else max(ry, 1.0)
            disparity = max(plane.a * x + plane.b * y + plane.c, 0.0)
            limit = Dome.steepest_height(min(rx, ry), SLOPE - abs(plane.a))
            return Dome(x, y, rx, ry, float(np.clip(disparity * rx / focal, 0.0, max(limit, 0.0))))

        return make

    def folds(self, strength: float, vertical: bool) -> ReliefMaker:
        """The relief of cloth: waves, mostly across the width if `vertical`."""
        rng, focal = self.rng, self.stage.view.focal
        count = int(rng.integers(2, 4))
        lengths = rng.uniform(35, 160, count)
        spread = rng.normal(0.0, 0.25 if vertical else 1.5, count)
        phases, shares = rng.uniform(0, 7, count), rng.dirichlet(np.ones(count))

        def make(plane: Plane, extent: Extent) -> Relief:
            x, y = (extent[0] + extent[2]) / 2, (extent[1] + extent[3]) / 2
            disparity = max(plane.a * x + plane.b * y + plane.c, 0.0)
            k = 2 * np.pi / lengths
            height = np.minimum(strength * disparity * lengths / focal, (SLOPE - abs(plane.a)) / k)
            return Folds(
                np.stack([np.maximum(height, 0) * shares, k * np.cos(spread), k * np.sin(spread), phases], 1)
            )

        return make

    def box(
        self,
        at: tuple[float, float, float],
        size: tuple[float, float, float],
        yaw: float,
        material: Material,
        front: Material | None = None,
    ) -> list[Facet]:
        """The faces of a box that the camera sees; `at`: centre of the base, `size`: width, height, depth."""
        w, h, d = size
        corner = np.array([[i, j, k] for k in (0, 1) for j in (0, 1) for i in (0, 1)], np.float64)
        local = (corner - (0.5, 0.0, 0.5)) * (w, h, d)
        cos, sin = np.cos(yaw), np.sin(yaw)
        turned = np.stack(
            [local[:, 0] * cos - local[:, 2] * sin, local[:, 1], local[:, 0] * sin + local[:, 2] * cos], 1
        )
        camera = self.stage.view.to_camera(turned + at)
        group, centre = self.stage.new_group(), camera.mean(axis=0)
        faces = []
        for number, index in enumerate(_FACES):
            points = camera[index]
            normal = cross(points[1] - points[0], points[2] - points[0])
            normal *= np.sign(normal @ (points.mean(axis=0) - centre))
            if normal @ points[0] < 0:
                chosen = front if front is not None and number == 0 else material
                faces.append(Facet([points], chosen, group))
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
        """A flat or bulging thing on its feet, facing the camera unless `yaw` says otherwise."""
        yaw = self.facing(at[0], at[2]) if yaw is None else yaw
        return Facet(self.upright(contours, at, yaw, lean), material, relief=relief)

    def add(self, thing: list[Facet], floor: int | None = None, shadow: Facet | None = None) -> None:
        """Put a thing on the stage, and its shadow on the sheet number `floor` of the background."""
        self.stage.objects.append(thing)
        if floor is not None and shadow is not None:
            self.stage.background[floor].append(shadow)

    def decal(self, facet: Facet, parts: list[Contour], material: Material) -> Facet:
        """Shapes on a four-cornered facet, in coordinates 0..1 along its first two edges."""
        origin, right, up = facet.contours[0][0], facet.contours[0][1], facet.contours[0][3]
        points = [origin + c[:, :1] * (right - origin) + c[:, 1:] * (up - origin) for c in parts]
        return replace(facet, contours=points, material=material, decal=True, relief=None)
