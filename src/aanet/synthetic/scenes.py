"""Kinds of scenes: rooms, streets, corridors, table tops, studios, and flying objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from aanet.synthetic import objects, shapes
from aanet.synthetic.library import TextureLibrary, flat
from aanet.synthetic.materials import Materials
from aanet.synthetic.placement import Facet, Material, Viewpoint
from aanet.synthetic.props import Props
from aanet.synthetic.scene_builder import SceneBuilder
from aanet.synthetic.surfaces import Scene

ObjectMaker = Callable[[Props, objects.At, float], list[Facet]]
INDOORS: tuple[ObjectMaker, ...] = (
    *(objects.crate, objects.crate, objects.table, objects.chair, objects.shelf, objects.plant),
    *(objects.pillar, objects.ball, objects.bicycle, objects.rack, objects.sticks),
)
OUTDOORS: tuple[ObjectMaker, ...] = (
    *(objects.car, objects.car, objects.car, objects.pole, objects.pole, objects.tree, objects.tree),
    *(objects.fence, objects.hedge, objects.person, objects.bicycle, objects.crate, objects.posts),
    objects.posts,
)
GROUNDED = 0.5  # share of scenes without floating shapes
MOST_FLOATING = 10
ON_A_TABLE: tuple[ObjectMaker, ...] = (
    *(objects.crate, objects.crate, objects.stack, objects.ball, objects.ball, objects.pillar),
    *(objects.pillar, objects.plant, objects.sticks, objects.rack, objects.sheet_of_paper),
)


def _viewpoint(
    rng: np.random.Generator, size: tuple[int, int], height: float, pitch: float, yaw: float
) -> Viewpoint:
    """Draw a camera with an off-center principal point, as in a training crop."""
    h, w = size
    focal = w * rng.uniform(0.85, 1.7)
    roll = rng.normal(0.0, 0.01)
    cp, sp, cy, sy, cr, sr = (
        np.cos(pitch),
        np.sin(pitch),
        np.cos(yaw),
        np.sin(yaw),
        np.cos(roll),
        np.sin(roll),
    )
    about_y = np.array([[cy, 0, -sy], [0, 1, 0], [sy, 0, cy]])
    about_x = np.array([[1, 0, 0], [0, cp, -sp], [0, sp, cp]])
    about_z = np.array([[cr, -sr, 0], [sr, cr, 0], [0, 0, 1]])
    center = rng.normal((w / 2, h / 2), (0.08 * w, 0.06 * h))
    return Viewpoint(focal, float(center[0]), float(center[1]), size, height, about_z @ about_x @ about_y)


def _props(rng: np.random.Generator, library: TextureLibrary, view: Viewpoint, kind: str) -> Props:
    light = rng.normal((0.0, -0.7, -0.8), (0.6, 0.3, 0.4))
    builder = SceneBuilder(view, rng, kind, light / np.linalg.norm(light), rng.uniform(0.45, 0.75))
    return Props(builder, Materials(library, rng))


def _backdrop(props: Props, distance: float, material: Material) -> None:
    """Add a sheet behind everything, so that every pixel of both views belongs to a surface."""
    size = 6.0 * distance
    square = shapes.rectangle(size, size)
    points = np.column_stack([square, np.full(4, distance)])
    props.builder.background.append([Facet([points], material)])


def _scatter(
    props: Props, things: tuple[ObjectMaker, ...], count: int, near: float, far: float, scale: float = 1.0
) -> None:
    """Place objects at random columns and distances, fewer near ones, which would hide the rest."""
    rng, view = props.rng, props.builder.view
    for _ in range(count):
        distance = near * (far / near) ** rng.random() ** 0.8
        x = view.world_at(rng.uniform(-0.05, 1.05) * view.size[1], distance)
        at = (x, 0.0, distance)
        thing = things[int(rng.integers(len(things)))](props, at, scale)
        if thing:
            _stand(props, thing, at, scale)


def _float(props: Props, near: float, far: float) -> None:
    """In half of the scenes, add floating shapes: edges and occlusions that no arrangement on a floor has."""
    rng, view = props.rng, props.builder.view
    if rng.random() < GROUNDED:
        return
    for _ in range(int(rng.integers(1, MOST_FLOATING + 1))):
        distance = near * (far / near) ** rng.random()
        x, y = rng.uniform((0.0, 0.0), view.size[::-1])
        props.add([_flyer(props, view.point_at(x, y, distance), distance)])


def _stand(props: Props, thing: list[Facet], at: objects.At, scale: float = 1.0) -> None:
    """Put an object on the floor, with its shadow."""
    x, _, distance = at
    foot = np.concatenate([c for facet in thing for c in facet.contours])
    reach = float(np.clip((foot[:, 0].max() - foot[:, 0].min()) / 2, 0.03, 2.5))
    seen = distance < 20 * scale  # the shadow of a distant object is only a line of pixels
    props.add(thing, 1 if seen else None, props.shadow(x, distance, reach, reach * 0.6))


def room(rng: np.random.Generator, library: TextureLibrary, size: tuple[int, int], near: float) -> Scene:
    """A room with furniture, pictures on the walls and shadows on the floor."""
    view = _viewpoint(rng, size, rng.uniform(0.9, 1.7), rng.uniform(0.0, 0.35), rng.uniform(-0.6, 0.6))
    props = _props(rng, library, view, "room")
    depth, left, right, high = (
        rng.uniform(2.8, 7.0),
        -rng.uniform(1.5, 4),
        rng.uniform(1.5, 4),
        rng.uniform(2.3, 3.2),
    )
    pick, builder = props.materials.pick, props.builder
    _backdrop(props, 3 * depth, pick("wall"))
    group = builder.new_group()
    wall = pick("wall")
    floor = props.sheet(
        [(left, 0, -2), (right, 0, -2), (right, 0, depth), (left, 0, depth)], pick("floor"), group
    )
    builder.background.append([floor])
    roof = [(left, high, -2), (left, high, depth), (right, high, depth), (right, high, -2)]
    builder.background.append([props.sheet(roof, Material(flat((0.9, 0.9, 0.88))), group)])
    for a, b in (((left, -2), (left, depth)), ((left, depth), (right, depth)), ((right, depth), (right, -2))):
        corners = [(a[0], 0.0, a[1]), (b[0], 0.0, b[1]), (b[0], high, b[1]), (a[0], high, a[1])]
        side = props.sheet(corners, wall if rng.random() < 0.7 else pick("wall"), group)
        builder.background.append([side, *_pictures(props, side)])
    _scatter(props, INDOORS, int(rng.integers(4, 8)), 1.5, depth * 0.95)
    _float(props, 1.5, depth * 0.95)
    return builder.build(near)


def _pictures(props: Props, wall: Facet) -> list[Facet]:
    """Frames, windows and a baseboard on a wall."""
    rng = props.rng
    found = [
        props.decal(wall, [shapes.rectangle(1.0, 0.05, 0.5, 0.025)], props.materials.paint(0.3, 0.95, 0.2))
    ]
    for _ in range(int(rng.integers(0, 4))):
        w, h = rng.uniform(0.08, 0.25), rng.uniform(0.15, 0.4)
        x, y = rng.uniform(0.15, 0.85), rng.uniform(0.45, 0.75)
        found.append(
            props.decal(wall, [shapes.rectangle(w, h, x, y)], props.materials.paint(0.05, 0.95, 0.4))
        )
        found.append(
            props.decal(wall, [shapes.rectangle(w * 0.88, h * 0.9, x, y)], props.materials.pick("paper"))
        )
    return found


def street(rng: np.random.Generator, library: TextureLibrary, size: tuple[int, int], near: float) -> Scene:
    """A road between houses under the sky, with cars, trees, poles and people."""
    view = _viewpoint(rng, size, rng.uniform(1.2, 2.2), rng.normal(0.03, 0.05), rng.normal(0.0, 0.2))
    props = _props(rng, library, view, "street")
    builder, pick = props.builder, props.materials.pick
    _backdrop(props, 3000.0, Material(pick("sky").texture, 0.6))
    half = rng.uniform(3.0, 6.0)
    ground = [(-90.0, 0.0, -5.0), (90.0, 0.0, -5.0), (90.0, 0.0, 300.0), (-90.0, 0.0, 300.0)]
    builder.background.append([props.sheet(ground, pick("road")), *_road(props, half)])
    for side in (-1.0, 1.0):
        z, setback = rng.uniform(-4, 6), half + rng.uniform(2.0, 6.0)
        while z < 60 and rng.random() < 0.85:
            long, high, deep = rng.uniform(12, 34), rng.uniform(5, 16), rng.uniform(6, 12)
            at = (side * (setback + deep / 2 + rng.uniform(0, 1.5)), 0.0, z + long / 2)
            builder.objects.append(props.box(at, (deep, high, long), rng.normal(0, 0.02), pick("facade")))
            z += long + float(rng.choice([0.0, 0.0, 4.0]))
        if rng.random() < 0.35:
            _parked_cars(props, side * (half - 1.0))
    _scatter(props, OUTDOORS, int(rng.integers(4, 9)), 6.0, 45.0)
    if rng.random() < 0.3:
        for _ in range(int(rng.integers(1, 4))):
            cable = [shapes.wire(40.0, rng.uniform(0.3, 1.5), rng.uniform(0.02, 0.06))]
            at = (0.0, rng.uniform(4, 7), rng.uniform(8, 30))
            props.add([props.standing(cable, at, props.materials.paint(0.02, 0.2), None, rng.normal(0, 0.3))])
    _float(props, 6.0, 45.0)
    return builder.build(near)


def _parked_cars(props: Props, x: float) -> None:
    """A row of cars along the curb, with gaps."""
    rng = props.rng
    z = rng.uniform(4.0, 9.0)
    while z < 40.0:
        if rng.random() < 0.75:
            at = (x + rng.normal(0.0, 0.15), 0.0, z)
            _stand(props, objects.turned_car(props, at, 1.0, np.pi / 2 + rng.normal(0.0, 0.05)), at)
        z += rng.uniform(5.2, 6.5)


def _road(props: Props, half: float) -> list[Facet]:
    """Sidewalks, curbs and lane markings on the ground."""
    rng, view = props.rng, props.builder.view

    def strips(edges: list[tuple[float, float, float, float]], material: Material) -> Facet:
        corners = [np.array([(a, 0, c), (b, 0, c), (b, 0, d), (a, 0, d)], np.float64) for a, b, c, d in edges]
        return Facet([view.to_camera(c) for c in corners], material, decal=True)

    dash, x = rng.uniform(2, 5), rng.normal(0, 0.5)
    found: list[Facet] = []
    if rng.random() < 0.8:
        sides = [(half, half + 30, -5.0, 300.0), (-half - 30, -half, -5.0, 300.0)]
        found.append(strips(sides, props.materials.pick("verge")))
    if rng.random() < 0.5:
        curbs = [(half, half + 0.2, -5.0, 300.0), (-half - 0.2, -half, -5.0, 300.0)]
        found.append(strips(curbs, props.materials.paint(0.4, 0.85, 0.1)))
    if rng.random() < 0.8:
        dashes = [(x, x + 0.15, z, z + dash) for z in np.arange(2.0, 60.0, dash * 2)]
        found.append(strips(dashes, Material(flat((0.85, 0.85, 0.8)))))
    if rng.random() < 0.5:  # shadows of houses and trees outside the view
        edges = np.cumsum(rng.uniform(2, 14, 6))
        shade = strips([(-30, 30, edges[k], edges[k + 1]) for k in (0, 2, 4)], Material(flat((0, 0, 0))))
        found.append(replace(shade, opacity=float(rng.uniform(0.3, 0.7)), blur=1.0))
    return found


def corridor(rng: np.random.Generator, library: TextureLibrary, size: tuple[int, int], near: float) -> Scene:
    """A road between two long walls under a ceiling: a tunnel, an underpass, a hallway."""
    view = _viewpoint(rng, size, rng.uniform(1.0, 2.0), rng.normal(0.03, 0.05), rng.normal(0.0, 0.15))
    props = _props(rng, library, view, "corridor")
    builder, pick = props.builder, props.materials.pick
    left, right, high = -rng.uniform(1.2, 9), rng.uniform(1.2, 9), rng.uniform(2.4, 7)
    end = 20.0 ** rng.uniform(1.0, 1.8)
    _backdrop(props, 1.1 * end, pick("sky"))
    ground = [(left, 0.0, -5.0), (right, 0.0, -5.0), (right, 0.0, end), (left, 0.0, end)]
    builder.background.append([props.sheet(ground, pick("road")), *_road(props, min(-left, right))])
    roof = [(left, high, -5.0), (left, high, end), (right, high, end), (right, high, -5.0)]
    ceiling = props.sheet(roof, pick("wall"))
    builder.background.append([ceiling, *_lamps(props, ceiling, end + 5.0)])
    wall = pick("wall")
    for x in (left, right):
        corners = [(x, 0.0, -5.0), (x, 0.0, end), (x, high, end), (x, high, -5.0)]
        side = props.sheet(corners, wall if rng.random() < 0.7 else pick("facade"))
        builder.background.append([side])
    _scatter(props, OUTDOORS, int(rng.integers(0, 5)), 6.0, min(0.9 * end, 45.0))
    _float(props, 6.0, min(0.9 * end, 45.0))
    return builder.build(near)


def _lamps(props: Props, ceiling: Facet, length: float) -> list[Facet]:
    """Rows of lamps along the ceiling of a corridor; its first edge runs along it."""
    rng = props.rng
    step, long, wide = rng.uniform(3.0, 12.0), rng.uniform(0.3, 2.0), rng.uniform(0.02, 0.08)
    rows = ((), (0.5,), (rng.uniform(0.1, 0.9),), (0.25, 0.75))[int(rng.integers(4))]
    lamps = [
        shapes.rectangle(long / length, wide, z / length, across)
        for across in rows
        for z in np.arange(rng.uniform(5.0, 5.0 + step), length - long, step)
    ]
    return [props.decal(ceiling, lamps, props.materials.lamp())] if lamps else []


def table_top(rng: np.random.Generator, library: TextureLibrary, size: tuple[int, int], near: float) -> Scene:
    """A table with many objects in front of a wall or a hanging cloth, as in Middlebury's scenes."""
    view = _viewpoint(rng, size, rng.uniform(0.3, 0.9), rng.uniform(0.05, 0.45), rng.uniform(-0.25, 0.25))
    props = _props(rng, library, view, "table_top")
    builder, far = props.builder, rng.uniform(1.4, 2.4)
    cloth = rng.random() < 0.35
    wall = props.materials.pick("cloth" if cloth else "wall")
    slant = rng.normal(0, 0.25)
    _backdrop(props, 2.2 * far, props.materials.pick("wall"))
    top = [(-4.0, 0.0, 0.05), (4.0, 0.0, 0.05), (4.0, 0.0, far + 1), (-4.0, 0.0, far + 1)]
    builder.background.append([props.sheet(top, props.materials.pick("table"))])
    corners = [(x, y, far + slant * x) for x, y in ((-4.0, -0.02), (4.0, -0.02), (4.0, 4.0), (-4.0, 4.0))]
    back = props.sheet(corners, wall)
    relief = props.folds(rng.uniform(0.3, 1.0), True) if cloth else None
    hung = [] if cloth else _pictures(props, back)[1:]
    builder.background.append([Facet(back.contours, back.material, relief=relief), *hung])
    _scatter(props, ON_A_TABLE, int(rng.integers(6, 12)), far * 0.55, far * 0.97, 0.3 * far)
    _float(props, far * 0.55, far * 0.97)
    return builder.build(near)


def studio(rng: np.random.Generator, library: TextureLibrary, size: tuple[int, int], near: float) -> Scene:
    """A few objects on a table, and a bare wall at some distance behind them.

    The wall can hardly be matched, so its disparity has to come from what surrounds it.
    """
    view = _viewpoint(rng, size, rng.uniform(0.15, 0.7), rng.uniform(-0.05, 0.3), rng.uniform(-0.3, 0.3))
    props = _props(rng, library, view, "studio")
    builder, pick = props.builder, props.materials.pick
    edge = rng.uniform(1.3, 2.4)  # of the table
    far = edge * rng.uniform(1.0, 1.8)
    wall = props.materials.paint(0.3, 0.95, 0.25)
    if rng.random() < 0.5:
        wall = Material(props.materials.texture("plain"))
    _backdrop(props, 2.2 * far, wall)
    slant = rng.normal(0, 0.08)
    corners = [(x, y, far + slant * x) for x, y in ((-9.0, -9.0), (9.0, -9.0), (9.0, 9.0), (-9.0, 9.0))]
    builder.background.append([props.sheet(corners, wall)])
    top = [(-4.0, 0.0, 0.05), (4.0, 0.0, 0.05), (4.0, 0.0, edge), (-4.0, 0.0, edge)]
    builder.background.append([props.sheet(top, wall if rng.random() < 0.4 else pick("table"))])
    _scatter(
        props, ON_A_TABLE, int(rng.integers(2, 8)), edge * 0.5, edge * 0.95, rng.uniform(0.25, 0.7) * edge
    )
    return builder.build(near)


def flying(rng: np.random.Generator, library: TextureLibrary, size: tuple[int, int], near: float) -> Scene:
    """Slanted and curved shapes of random outlines in front of a slanted wall."""
    view = _viewpoint(rng, size, 1.5, 0.0, 0.0)
    props = _props(rng, library, view, "flying")
    distance = rng.uniform(4, 9)
    _backdrop(props, 3 * distance, props.materials.pick("wall"))
    yaw, lean = rng.normal(0, 0.35), rng.normal(0, 0.35)
    wall = props.upright([shapes.rectangle(60, 60)], (0.0, 1.5, distance), yaw, lean)
    props.builder.background.append([Facet(wall, props.materials.pick("object"))])
    for _ in range(int(rng.integers(7, 14))):
        z = rng.uniform(1.5, distance * 0.9)
        x, y = view.world_at(rng.uniform(0, size[1]), z), 1.5 + rng.normal(0, 0.25) * z * size[0] / view.focal
        props.add([_flyer(props, (x, y, z), z)])
    return props.builder.build(near)


def _flyer(props: Props, at: objects.At, z: float) -> Facet:
    rng = props.rng
    outlines = (
        shapes.polygon,
        shapes.blob,
        lambda _: shapes.ellipse(1.0, 0.6),
        lambda _: shapes.rectangle(1.6, 1.0),
    )
    shape = [outlines[int(rng.integers(4))](rng)]
    if rng.random() < 0.25:
        shape = shapes.grid(
            int(rng.integers(3, 8)), int(rng.integers(3, 8)), 1.6, 1.4, rng.uniform(0.03, 0.12)
        )
    turn, scale = rng.uniform(0, 6.28), z * rng.uniform(0.04, 0.22)
    contours = [shapes.rotate(c, turn) * scale for c in shape]
    relief = (None, None, props.dome(False), props.folds(0.6, False))[int(rng.integers(4))]
    material = props.materials.pick("object")
    return props.standing(contours, at, material, relief, rng.normal(0, 0.5), rng.normal(0, 0.5))
