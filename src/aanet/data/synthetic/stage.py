"""A stage to build scenes on: facets placed in space before a pinhole camera, then turned into surfaces."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from aanet.data.synthetic.placement import (
    NEAREST,
    Extent,
    Facet,
    Material,
    Placement,
    Points,
    Viewpoint,
    cross,
    draw_mask,
    place_facet,
)
from aanet.data.synthetic.surfaces import Gloss, Matrix, Plane, Scene, Shading, Surface

MOST_ENLARGED = 0.6  # of the density asked for
SMALLEST_FALLOFF = 40.0  # px: on smaller facets nobody would see that the light falls off


@dataclass
class Stage:
    """Collects facets, then builds the scene for a chosen largest disparity."""

    view: Viewpoint
    rng: np.random.Generator
    kind: str
    light: Points  # direction towards the light, camera coordinates
    ambient: float
    background: list[list[Facet]] = field(default_factory=list)  # each sheet with its decals
    objects: list[list[Facet]] = field(default_factory=list)
    groups: int = 0

    def new_group(self) -> int:
        """A number for facets that share edges."""
        self.groups += 1
        return self.groups

    def build(self, near: float) -> Scene:
        """Choose the baseline so that the largest disparity in the left view is `near`, and make surfaces."""
        ordered = [facet for thing in self.background + self._back_to_front() for facet in thing]
        placed = [(facet, place_facet(facet, self.view)) for facet in ordered]
        seen = [(facet, place) for facet, place in placed if place is not None]
        nearest = max(place.nearest for _, place in seen)
        baseline = near / nearest
        surfaces: list[Surface] = []
        orphan = True  # a decal whose carrier is out of view goes with it
        for facet, place in placed:
            if not facet.decal:
                orphan = place is None
            if place is None or (facet.decal and orphan):
                continue
            surfaces.append(self._surface(facet, place, baseline, near))
        return Scene(self.kind, self.view.size, tuple(surfaces))

    def _back_to_front(self) -> list[list[Facet]]:
        def nearness(thing: list[Facet]) -> float:
            points = np.concatenate([c for facet in thing for c in facet.contours])
            return float(np.mean(1.0 / np.maximum(points[:, 2], NEAREST)))

        return sorted((thing for thing in self.objects if thing), key=nearness)

    def _surface(self, facet: Facet, place: Placement, baseline: float, near: float) -> Surface:
        view, material = self.view, facet.material
        q = place.q * baseline
        a, b = float(q[0]), float(q[1])
        plane = Plane(a, b, float(view.focal * q[2]) - a * view.cx - b * view.cy)
        height, width = view.size
        canvas, origin, extent = draw_mask(facet, place.pixels, (height, width + int(near) + 2), self.rng)
        relief = None if facet.relief is None else facet.relief(plane, extent)
        shift = np.array([[1.0, 0.0, -origin[0]], [0.0, 1.0, -origin[1]], [0.0, 0.0, 1.0]])
        return Surface(
            plane=plane,
            mask=canvas,
            mask_from_left=shift,
            texture=material.texture,
            texture_from_left=self._texture_map(facet, place),
            shading=self._shading(facet, place, plane, extent),
            relief=relief,
            gloss=self._gloss(material, plane, extent),
            group=facet.group,
            decal=facet.decal,
            opacity=facet.opacity,
        )

    def _texture_map(self, facet: Facet, place: Placement) -> Matrix:
        """Left pixels to texels: pixels to metres on the facet's plane, then to the density asked for."""
        if facet.material.texture.flat:
            return np.eye(3)
        view, q = self.view, place.q
        normal = q / math.sqrt(float(q @ q))
        up, ahead = -view.rotation[:, 1], view.rotation[:, 2]
        u = cross(normal, up if abs(float(normal @ up)) < 0.97 else ahead)
        u /= math.sqrt(float(u @ u))
        v = cross(normal, u)
        origin = facet.contours[0][0]
        plane = np.stack([u - float(origin @ u) * q, v - float(origin @ v) * q, q])
        inverse = np.array([[1, 0, -view.cx], [0, 1, -view.cy], [0, 0, view.focal]]) / view.focal
        metres = plane @ inverse
        (x, y), (wx, wy, w1) = place.near_pixel, metres[2].tolist()
        # |det(plane)| is 1 · q · normal; a homography magnifies areas by its determinant over w³.
        magnified = math.sqrt(float(q @ normal)) / view.focal / abs(wx * x + wy * y + w1) ** 1.5
        scale = facet.material.density / max(magnified, 1e-9)
        cos, sin = scale * math.cos(facet.material.angle), scale * math.sin(facet.material.angle)
        turned = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]]) @ metres
        return self._fit(facet.material, turned, place.seen) @ turned

    def _fit(self, material: Material, texture_map: Matrix, seen: Points) -> Matrix:
        """Show a random part of the texture, enlarged a little if that avoids its mirrored repeats."""
        texels = seen @ texture_map[:, :2].T + texture_map[:, 2]
        texels = texels[:, :2] / texels[:, 2:]
        low, span = texels.min(axis=0), np.ptp(texels, axis=0)
        height, width = material.texture.image.shape[:2]
        size = np.array([width - 1.0, height - 1.0])
        scale = float(np.clip((size / np.maximum(span, 1.0)).min(), MOST_ENLARGED, 1.0))
        slack = size - scale * span
        shift = self.rng.random(2) * np.maximum(slack, 0.0) + np.minimum(slack, 0.0) / 2 - scale * low
        return np.array([[scale, 0.0, shift[0]], [0.0, scale, shift[1]], [0.0, 0.0, 1.0]])

    def _shading(self, facet: Facet, place: Placement, plane: Plane, extent: Extent) -> Shading:
        normal = -place.q / np.linalg.norm(place.q)  # towards the camera
        lit = self.ambient + (1.0 - self.ambient) * max(float(normal @ self.light), 0.0)
        r, g, b = (float(c * lit) for c in facet.material.colour)
        x, y = (extent[0] + extent[2]) / 2, (extent[1] + extent[3]) / 2
        span = max(extent[2] - extent[0], extent[3] - extent[1])
        even = facet.decal or span < SMALLEST_FALLOFF
        slope = (0.0, 0.0) if even else tuple(self.rng.normal(0.0, 0.16, 2) / span)
        # A relief whose disparity rises by g per pixel turns the normal by about focal / disparity × g.
        turn = -0.3 * self.view.focal / max(plane.a * x + plane.b * y + plane.c, 1.0)
        relief = (float(turn * self.light[0]), float(turn * self.light[1]))
        return Shading((r, g, b), (float(slope[0]), float(slope[1])), (x, y), relief)

    def _gloss(self, material: Material, plane: Plane, extent: Extent) -> Gloss | None:
        if material.gloss == 0.0:
            return None
        height, width = self.view.size
        x0, x1 = np.clip((extent[0], extent[2]), 0, width)
        y0, y1 = np.clip((extent[1], extent[3]), 0, height)
        x, y = self.rng.uniform(x0, x1), self.rng.uniform(y0, y1)
        disparity = max(plane.a * x + plane.b * y + plane.c, 0.0) * self.rng.uniform(0.3, 0.9)
        size = self.rng.uniform(0.08, 0.35, 2) * np.clip([x1 - x0, y1 - y0], 12.0, 250.0)
        return Gloss(x, y, float(disparity), float(size[0]), float(size[1]), material.gloss)
