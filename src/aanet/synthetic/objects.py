"""Compound objects: furniture, plants, vehicles, street furniture."""

from __future__ import annotations

import numpy as np

from aanet.synthetic import shapes
from aanet.synthetic.library import flat
from aanet.synthetic.placement import Facet, Material
from aanet.synthetic.props import Props
from aanet.synthetic.shapes import Contour

At = tuple[float, float, float]  # world position of the base


def crate(props: Props, at: At, scale: float) -> list[Facet]:
    """A box, book or cabinet, sometimes with another material on its front."""
    rng = props.rng
    size = tuple(float(v) for v in scale * rng.uniform((0.3, 0.15, 0.2), (1.0, 1.1, 0.8)))
    front = props.materials.pick("paper") if rng.random() < 0.4 else None
    return props.box(
        at, (size[0], size[1], size[2]), rng.uniform(-0.8, 0.8), props.materials.pick("object"), front
    )


def stack(props: Props, at: At, scale: float) -> list[Facet]:
    """A pile of books or boards."""
    rng, things, y = props.rng, [], at[1]
    for _ in range(int(rng.integers(2, 5))):
        height = scale * rng.uniform(0.06, 0.16)
        size = (scale * rng.uniform(0.5, 0.9), height, scale * rng.uniform(0.4, 0.6))
        things += props.box((at[0], y, at[2]), size, rng.uniform(-0.4, 0.4), props.materials.pick("object"))
        y += height
    return things


def table(props: Props, at: At, scale: float) -> list[Facet]:
    """A slab on four legs."""
    rng = props.rng
    w, d, h = scale * rng.uniform(0.8, 1.6), scale * rng.uniform(0.5, 0.9), scale * rng.uniform(0.5, 0.8)
    yaw, material = rng.uniform(-0.5, 0.5), props.materials.pick("furniture")
    thick = scale * rng.uniform(0.03, 0.07)
    things: list[Facet] = []
    for i, k in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
        u, v = i * (w / 2 - thick), k * (d / 2 - thick)
        x, z = at[0] + u * np.cos(yaw) - v * np.sin(yaw), at[2] + u * np.sin(yaw) + v * np.cos(yaw)
        leg = shapes.rectangle(thick, h, 0.0, h / 2)
        things.append(props.standing([leg], (x, at[1], z), material))
    return things + props.box((at[0], at[1] + h, at[2]), (w, thick, d), yaw, material)


def chair(props: Props, at: At, scale: float) -> list[Facet]:
    """Seat, back with bars, legs."""
    rng = props.rng
    yaw, material = rng.uniform(-1.2, 1.2), props.materials.pick("furniture")
    seat, side, thick = 0.45 * scale, 0.42 * scale, 0.035 * scale
    legs = []
    for i, k in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
        u, v = i * side * 0.45, k * side * 0.45
        x, z = at[0] + u * np.cos(yaw) - v * np.sin(yaw), at[2] + u * np.sin(yaw) + v * np.cos(yaw)
        legs.append(props.standing([shapes.rectangle(thick, seat, 0.0, seat / 2)], (x, at[1], z), material))
    bars = shapes.grid(int(rng.integers(2, 6)), 2, side, seat * 0.9, thick)
    x, z = at[0] - side * 0.45 * np.sin(yaw), at[2] + side * 0.45 * np.cos(yaw)
    back = props.standing(
        [shapes.moved(b, 0, seat * 0.5) for b in bars], (x, at[1] + seat, z), material, yaw=yaw
    )
    return [back, *legs, *props.box((at[0], at[1] + seat, at[2]), (side, thick, side), yaw, material)]


def shelf(props: Props, at: At, scale: float) -> list[Facet]:
    """A cabinet whose front shows rows of book spines."""
    rng = props.rng
    size = (scale * rng.uniform(0.8, 1.4), scale * rng.uniform(1.2, 2.0), scale * 0.35)
    faces = props.box(at, size, rng.uniform(-0.5, 0.5), props.materials.pick("furniture"))
    front, rows = faces[0], int(rng.integers(2, 5))
    hollow = [shapes.rectangle(0.92, 0.82 / rows, 0.5, (r + 0.5) / rows) for r in range(rows)]
    decals = [props.decal(front, hollow, Material(flat((0.1, 0.08, 0.07))))]
    spines: list[list[Contour]] = [[] for _ in range(5)]  # books of five colors
    for row in range(rows):
        x = 0.05
        while x < 0.9:
            width, height = rng.uniform(0.03, 0.09), rng.uniform(0.55, 0.8) / rows
            spine = shapes.rectangle(width * 0.92, height, x + width / 2, (row + 0.1) / rows + height / 2)
            spines[int(rng.integers(5))].append(spine)
            x += width
    for books in spines:
        if books:
            cover = (
                props.materials.paint(0.1, 0.9, 0.9) if rng.random() < 0.5 else props.materials.pick("paper")
            )
            decals.append(props.decal(front, books, cover))
    return [front, *decals, *faces[1:]]


def ball(props: Props, at: At, scale: float) -> list[Facet]:
    """A ball or a rounded stone."""
    rng = props.rng
    radius = scale * rng.uniform(0.12, 0.4)
    rock = rng.random() < 0.5
    outline = shapes.blob(rng, 0.2) if rock else shapes.ellipse(1, 1)
    material = props.materials.pick("rock" if rock else "object")
    contour = outline * (radius * rng.uniform(0.9, 1.6) if rock else radius, radius) + (0, radius * 0.95)
    return [props.standing([contour], at, material, props.dome(False))]


def pillar(props: Props, at: At, scale: float) -> list[Facet]:
    """A bottle, vase, lampshade or column: a surface of revolution."""
    height, profile = scale * props.rng.uniform(0.5, 1.3), shapes.bottle(props.rng)
    return [props.standing([profile * height], at, props.materials.pick("object"), props.dome(True))]


def sheet_of_paper(props: Props, at: At, scale: float) -> list[Facet]:
    """A board, picture or torn sheet that leans back, sometimes curled."""
    rng = props.rng
    outline = shapes.polygon(rng) if rng.random() < 0.5 else shapes.rectangle(1.4, rng.uniform(0.8, 1.8))
    contour = outline * scale * rng.uniform(0.25, 0.6)
    contour -= (0.0, contour[:, 1].min())
    relief = props.folds(0.5, True) if rng.random() < 0.4 else None
    yaw, lean = props.facing(at[0], at[2]) + rng.uniform(-0.9, 0.9), rng.uniform(0.0, 0.7)
    return [props.standing([contour], at, props.materials.pick("paper"), relief, yaw, lean)]


def plant(props: Props, at: At, scale: float) -> list[Facet]:
    """A pot with leaves in a few planes."""
    rng, height = props.rng, scale * props.rng.uniform(0.15, 0.3)
    pot = np.array([[-0.35, 0], [0.35, 0], [0.5, 1], [-0.5, 1]]) * height
    things = [props.standing([pot], at, props.materials.pick("object"), props.dome(True))]
    material, long = props.materials.leaf_green(), scale * rng.uniform(0.4, 0.9)
    slender = rng.uniform(0.06, 0.25)
    for _ in range(int(rng.integers(4, 9))):
        leaves = [
            shapes.leaf(long * rng.uniform(0.6, 1), long * slender, rng.normal(0, 0.3), rng.uniform(0.2, 2.9))
            for _ in range(int(rng.integers(1, 4)))
        ]
        yaw, lean = rng.uniform(-1.0, 1.0), rng.uniform(-0.5, 0.5)
        base = (at[0], at[1] + height, at[2] + rng.uniform(-0.1, 0.1) * long)
        things.append(props.standing(leaves, base, material, None, yaw, lean))
    return things


def sticks(props: Props, at: At, scale: float) -> list[Facet]:
    """A few thin rods, cables or stems, each in its own plane."""
    rng, things = props.rng, []
    for _ in range(int(rng.integers(1, 5))):
        x, tilt, long = at[0] + scale * rng.normal(0, 0.3), rng.normal(0, 0.35), scale * rng.uniform(0.8, 2.2)
        thick = scale * rng.uniform(0.012, 0.05)
        line = [shapes.bar(0, 0, long * np.sin(tilt), long * np.cos(tilt), thick)]
        material = props.materials.paint() if rng.random() < 0.6 else props.materials.pick("furniture")
        things.append(props.standing(line, (x, at[1], at[2]), material, None, rng.uniform(-0.6, 0.6)))
    return things


def rack(props: Props, at: At, scale: float) -> list[Facet]:
    """A see-through grille, basket or wheel of thin bars."""
    rng = props.rng
    thick = scale * rng.uniform(0.01, 0.03)
    if rng.random() < 0.35:
        radius = scale * rng.uniform(0.3, 0.6)
        bars = shapes.wheel(radius, int(rng.integers(8, 28)), thick * 2, 0.0, radius)
    else:
        w, h = scale * rng.uniform(0.5, 1.4), scale * rng.uniform(0.4, 1.0)
        columns, rows = (int(v) for v in rng.integers(4, 12, 2))
        bars = [shapes.moved(b, 0, h / 2) for b in shapes.grid(columns, rows, w, h, thick)]
    yaw = props.facing(at[0], at[2]) + rng.uniform(-0.6, 0.6)
    return [props.standing(bars, at, props.materials.paint(0.05, 0.95, 0.4), None, yaw)]


def bicycle(props: Props, at: At, scale: float) -> list[Facet]:
    """A bicycle leaning on its stand."""
    rng = props.rng
    parts = [c * scale for c in shapes.bicycle(rng.uniform(0.02, 0.04))]
    return [props.standing(parts, at, props.materials.paint(0.02, 0.7), None, rng.uniform(-0.9, 0.9), 0.05)]


def person(props: Props, at: At, scale: float) -> list[Facet]:
    """A standing or walking person, slightly rounded."""
    parts = [c * scale for c in shapes.figure(props.rng)]
    return [props.standing(parts, at, props.materials.pick("object"), props.dome(True))]


def car(props: Props, at: At, scale: float) -> list[Facet]:
    """A car across or along the street."""
    rng = props.rng
    return turned_car(props, at, scale, float(rng.choice([0.0, np.pi / 2])) + rng.normal(0, 0.12))


def turned_car(props: Props, at: At, scale: float, yaw: float) -> list[Facet]:
    """Body, cabin with slanted windows, and wheels."""
    rng = props.rng
    long, high, wide = scale * rng.uniform(3.6, 4.8), scale * rng.uniform(0.6, 0.8), scale * 1.75
    paint, glass = props.materials.pick("bodywork"), props.materials.glass()
    body = props.box((at[0], at[1] + 0.25 * scale, at[2]), (long, high, wide), yaw, paint)
    roof = (at[0], at[1] + 0.25 * scale + high, at[2])
    size = (long * rng.uniform(0.55, 0.75), scale * rng.uniform(0.5, 0.7), wide * 0.9)
    cabin = props.box(roof, size, yaw, paint, top=(rng.uniform(0.5, 1.0), rng.uniform(0.75, 1.0)))
    near = -0.5 * wide if np.cos(yaw + props.facing(at[0], at[2])) > 0 else 0.5 * wide
    wheels = [shapes.ellipse(0.32 * scale, 0.32 * scale, u * long, 0.32 * scale) for u in (-0.32, 0.32)]
    spot = (at[0] - near * 1.02 * np.sin(yaw), at[1], at[2] + near * 1.02 * np.cos(yaw))
    rubber = Material(flat((0.05, 0.05, 0.05)))
    things = [*body, props.standing(wheels, spot, rubber, None, yaw)]
    detailed = at[2] < 18 * scale
    for face in cabin:
        things.append(face)
        if detailed:
            things.append(props.decal(face, [shapes.rectangle(0.84, 0.66, 0.5, 0.5)], glass))
    return things


def tree(props: Props, at: At, scale: float) -> list[Facet]:
    """A trunk, some branches and clumps of foliage at different depths."""
    rng = props.rng
    high, thick = scale * rng.uniform(2.2, 3.5), scale * rng.uniform(0.1, 0.3)
    bark = props.materials.pick("bark")
    trunk = np.array([[-0.6, 0], [0.6, 0], [0.4, 1], [-0.4, 1]]) * (thick, high * 1.2)
    things = [props.standing([trunk], at, bark, props.dome(True))]
    angles = rng.uniform(0.3, 2.8, 5)
    limbs = [
        shapes.bar(0, high * 0.8, high * 0.5 * np.cos(a), high * (0.8 + 0.5 * np.sin(a)), thick * 0.25)
        for a in angles
    ]
    things.append(props.standing(limbs, at, bark))
    foliage = props.materials.pick("foliage")
    for _ in range(int(rng.integers(2, 6))):
        center = rng.normal((0.0, high * 1.15, 0.0), (high * 0.25, high * 0.18, high * 0.2))
        clump = shapes.foliage(rng) * high * rng.uniform(0.15, 0.32)
        spot = (at[0] + center[0], at[1] + center[1], at[2] + center[2])
        things.append(props.standing([clump], spot, foliage, props.dome(False)))
    return things


def pole(props: Props, at: At, scale: float) -> list[Facet]:
    """A lamp post or a traffic sign."""
    rng = props.rng
    high, thick = scale * rng.uniform(2.2, 6.0), scale * rng.uniform(0.05, 0.14)
    things = [
        props.standing([shapes.rectangle(thick, high, 0, high / 2)], at, props.materials.paint(0.1, 0.7, 0.3))
    ]
    if rng.random() < 0.6:
        outline = (
            shapes.ellipse(1, 1)
            if rng.random() < 0.5
            else shapes.rotate(shapes.rectangle(1.5, 1.5), rng.choice([0, 0.785]))
        )
        sign = outline * 0.35 * scale + (0.0, high)
        spot = (at[0], at[1], at[2] - 0.03)
        things.append(props.standing([sign], spot, props.materials.pick("paper"), None, rng.normal(0, 0.3)))
    else:
        things.append(
            props.standing(
                [shapes.bar(0, high, scale * rng.choice([-1.0, 1.0]), high + 0.2, thick)],
                at,
                things[0].material,
            )
        )
    return things


def posts(props: Props, at: At, scale: float) -> list[Facet]:
    """A row of thin posts along the street or across it."""
    rng = props.rng
    high, thick = scale * rng.uniform(0.7, 1.6), scale * rng.uniform(0.04, 0.12)
    post, material = [shapes.rectangle(thick, high, 0, high / 2)], props.materials.paint(0.05, 0.95, 0.5)
    step = scale * rng.uniform(0.8, 2.5) * np.array([rng.normal(0.0, 0.4), 1.0])
    if rng.random() < 0.4:
        step = step[::-1]
    return [
        props.standing(post, (at[0] + k * step[0], at[1], at[2] + k * step[1]), material)
        for k in range(int(rng.integers(2, 7)))
    ]


def fence(props: Props, at: At, scale: float) -> list[Facet]:
    """Palings or railings along the street or across it."""
    rng = props.rng
    wide, high = scale * rng.uniform(2.0, 5.0), scale * rng.uniform(0.7, 1.4)
    parts = shapes.fence(int(rng.integers(8, 26)), wide, high, scale * rng.uniform(0.02, 0.08))
    return [props.standing(parts, at, props.materials.paint(0.05, 0.9, 0.4), None, rng.uniform(-1.2, 1.2))]


def hedge(props: Props, at: At, scale: float) -> list[Facet]:
    """A long box of leaves."""
    size = tuple(float(v) for v in scale * props.rng.uniform((1.5, 0.6, 0.5), (5.0, 1.6, 1.0)))
    return props.box(
        at, (size[0], size[1], size[2]), props.rng.uniform(-1.4, 1.4), props.materials.pick("foliage")
    )
