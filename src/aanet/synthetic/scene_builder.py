"""Builds scenes: facets in space in front of a pinhole camera, which become surfaces of the renderer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from aanet.synthetic.placement import (
    NEAREST,
    Extent,
    Facet,
    Material,
    Placement,
    Points,
    Vector,
    Viewpoint,
    draw_mask,
    place_facet,
)
from aanet.synthetic.surfaces import Gloss, Matrix, Plane, Reflection, Scene, Shading, Surface

SMALLEST_DENSITY = 0.6  # of the requested density
SMALLEST_FALLOFF = 40.0  # px: on smaller facets a light falloff would not be visible


@dataclass
class SceneBuilder:
    """Collects facets, then builds the scene for a given maximum disparity."""

    view: Viewpoint
    rng: np.random.Generator
    kind: str
    light: Points  # direction toward the light, camera coordinates
    ambient: float
    background: list[list[Facet]] = field(default_factory=list)  # each sheet with its decals
    objects: list[list[Facet]] = field(default_factory=list)
    groups: int = 0

    def new_group(self) -> int:
        """Return a new group number for facets that share edges."""
        self.groups += 1
        return self.groups

    def build(self, near: float) -> Scene:
        """Make surfaces, with the baseline for which the maximum disparity in the left view is `near`."""
        ordered = [facet for thing in self.background + self._back_to_front() for facet in thing]
        placed = [(facet, place_facet(facet, self.view)) for facet in ordered]
        seen = [(facet, place) for facet, place in placed if place is not None]
        nearest = max(place.nearest for _, place in seen)
        baseline = near / nearest
        surfaces: list[Surface] = []
        orphan = True  # a decal is dropped if the facet under it is out of view
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
        view, material, extent = self.view, facet.material, place.extent
        a, b, c = (baseline * v for v in place.q)
        plane = Plane(a, b, view.focal * c - a * view.cx - b * view.cy)
        height, width = view.size
        mask, mask_from_left = draw_mask(facet, place, (height, width + int(near) + 2), self.rng)
        return Surface(
            plane=plane,
            mask=mask,
            mask_from_left=mask_from_left,
            texture=material.texture,
            texture_from_left=self._texture_map(facet, place),
            shading=self._shading(facet, place, plane),
            relief=None if facet.relief is None else facet.relief(plane, extent),
            gloss=self._gloss(material, plane, extent),
            reflection=self._reflection(material, plane, extent),
            group=facet.group,
            decal=facet.decal,
            opacity=facet.opacity,
        )

    def _texture_map(self, facet: Facet, place: Placement) -> Matrix:
        """Return the map from left pixels to texels: to meters on the facet's plane, then to texels."""
        if facet.material.texture.flat:
            return np.eye(3)
        q, focal, cx, cy = place.q, self.view.focal, self.view.cx, self.view.cy
        length = math.sqrt(dot(q, q))
        normal = (q[0] / length, q[1] / length, q[2] / length)
        up, ahead = (-self.view.rotation[:, 1]).tolist(), self.view.rotation[:, 2].tolist()
        u = cross(normal, up if abs(dot(normal, up)) < 0.97 else ahead)
        size = math.sqrt(dot(u, u))
        u = (u[0] / size, u[1] / size, u[2] / size)
        v = cross(normal, u)
        origin = facet.contours[0][0].tolist()

        def in_pixels(row: Vector) -> Vector:  # convert a linear form on rays to one on pixels
            return row[0] / focal, row[1] / focal, row[2] - (row[0] * cx + row[1] * cy) / focal

        from_u, from_v = dot(origin, u), dot(origin, v)
        across = in_pixels((u[0] - from_u * q[0], u[1] - from_u * q[1], u[2] - from_u * q[2]))
        along = in_pixels((v[0] - from_v * q[0], v[1] - from_v * q[1], v[2] - from_v * q[2]))
        below = in_pixels(q)
        x, y = place.near_pixel
        # |det(plane)| is 1 · q · normal; a homography magnifies areas by its determinant over w³.
        magnified = math.sqrt(length) / focal / abs(below[0] * x + below[1] * y + below[2]) ** 1.5
        scale = facet.material.density / max(magnified, 1e-9)
        cos, sin = scale * math.cos(facet.material.angle), scale * math.sin(facet.material.angle)
        turn = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
        return self._fitted(facet.material, turn @ np.array([across, along, below]), place.seen)

    def _fitted(self, material: Material, texture_map: Matrix, seen: Points) -> Matrix:
        """Select a random part of the texture, magnified slightly if that avoids mirrored repeats."""
        texels = seen @ texture_map[:, :2].T + texture_map[:, 2]
        texels = texels[:, :2] / texels[:, 2:]
        height, width = material.texture.image.shape[:2]
        sizes, lows, highs = (
            (width - 1.0, height - 1.0),
            texels.min(axis=0).tolist(),
            texels.max(axis=0).tolist(),
        )
        spans = [high - low for low, high in zip(lows, highs, strict=True)]
        scale = min(size / max(span, 1.0) for size, span in zip(sizes, spans, strict=True))
        scale = min(max(scale, SMALLEST_DENSITY), 1.0)
        fit = np.diag([scale, scale, 1.0])
        for axis, place in enumerate(self.rng.random(2).tolist()):
            slack = sizes[axis] - scale * spans[axis]
            fit[axis, 2] = place * max(slack, 0.0) + min(slack, 0.0) / 2 - scale * lows[axis]
        return np.asarray(fit @ texture_map)

    def _shading(self, facet: Facet, place: Placement, plane: Plane) -> Shading:
        q, extent = place.q, place.extent
        toward = -dot(q, self.light.tolist()) / math.sqrt(dot(q, q))  # -q faces the camera
        lit = self.ambient + (1.0 - self.ambient) * max(toward, 0.0)
        r, g, b = facet.material.color
        x, y = (extent[0] + extent[2]) / 2, (extent[1] + extent[3]) / 2
        span = max(extent[2] - extent[0], extent[3] - extent[1])
        even = facet.decal or span < SMALLEST_FALLOFF
        sx, sy = (0.0, 0.0) if even else self.rng.normal(0.0, 0.16, 2).tolist()
        # A relief whose disparity rises by g per pixel turns the normal by about focal / disparity × g.
        turn = -0.3 * self.view.focal / max(plane.a * x + plane.b * y + plane.c, 1.0)
        relief = (float(turn * self.light[0]), float(turn * self.light[1]))
        return Shading(
            (float(r * lit), float(g * lit), float(b * lit)), (sx / span, sy / span), (x, y), relief
        )

    def _gloss(self, material: Material, plane: Plane, extent: Extent) -> Gloss | None:
        if material.gloss == 0.0:
            return None
        x0, y0, x1, y1 = self._in_view(extent)
        x, y = self.rng.uniform(x0, x1), self.rng.uniform(y0, y1)
        disparity = max(plane.a * x + plane.b * y + plane.c, 0.0) * self.rng.uniform(0.3, 0.9)
        size = self.rng.uniform(0.08, 0.35, 2) * np.clip([x1 - x0, y1 - y0], 12.0, 250.0)
        return Gloss(x, y, float(disparity), float(size[0]), float(size[1]), material.gloss)

    def _reflection(self, material: Material, plane: Plane, extent: Extent) -> Reflection | None:
        """Draw a reflection, which appears behind the surface."""
        if material.mirror is None:
            return None
        texture, strength = material.mirror
        x0, y0, x1, y1 = self._in_view(extent)
        at_middle = plane.a * (x0 + x1) / 2 + plane.b * (y0 + y1) / 2 + plane.c
        disparity = max(at_middle, 0.0) * self.rng.uniform(0.2, 0.95)
        # Curved surfaces compress reflections.
        across, along = np.exp(self.rng.uniform(np.log(0.5), np.log(4.0), 2))
        shift_x, shift_y = self.rng.uniform(0.0, 512.0, 2)
        matrix = np.array([[across, 0.0, shift_x], [0.0, along, shift_y], [0.0, 0.0, 1.0]])
        return Reflection(texture, matrix, float(disparity), strength)

    def _in_view(self, extent: Extent) -> Extent:
        """Return the part in the left view; of what only the right camera sees, the edge next to it."""
        height, width = self.view.size
        x0, x1 = np.clip((extent[0], extent[2]), 0.0, max(width, extent[0])).tolist()
        y0, y1 = np.clip((extent[1], extent[3]), 0.0, height).tolist()
        return x0, y0, x1, y1


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the dot product; NumPy is ten times slower on three numbers."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Sequence[float], b: Sequence[float]) -> Vector:
    """Return the cross product."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
