"""The readings of a network: all plausible ways to feed it and to read what it computes.

What the graph says is taken from it; what a user or a ready-made spec says replaces the rest. What remains
open is a list of complete specs, which `recognition` tries on a real pair.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from aanet.engines.foreign.graph import Graph, Port, Shape, find
from aanet.engines.foreign.spec import ForeignSpec, Table
from aanet.errors import UnsupportedError

IMAGENET_MEAN, IMAGENET_STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
_RANGES: tuple[Table, ...] = (
    {"range": [0.0, 1.0]},
    {"range": [0.0, 255.0]},
    {"range": [-1.0, 1.0]},
    {"range": [0.0, 1.0], "mean": IMAGENET_MEAN, "std": IMAGENET_STD},
)
_GUESSED_MULTIPLE = 64  # all sizes that networks ask for divide it, but for rare ones
_RESOLUTIONS = (1.0, 0.5, 0.25, 0.125)
_MAX_CHANNELS = 2  # of an output: optical flow has two
_SHORT = 16  # no image is so small


def feedings(graph: Graph, given: Table, name: str) -> list[Table]:
    """Return the ways to feed a network: tables that lack only the output.

    Args:
        graph: The network.
        given: What is known, which is never doubted.
        name: What to call the network.
    """
    _require_known_names(graph, given)
    found: list[Table] = []
    facts = {key: value for key, value in given.items() if key not in ("input", "image", "size", "output")}
    image, size = given.get("image", {}), given.get("size", {})
    for inputs in [given["input"]] if "input" in given else _inputs(graph):
        port = find(graph.inputs, max(inputs, key=lambda each: each.get("scale", 1.0))["name"])
        assert port is not None  # `_require_known_names` has checked it
        views = inputs[0]["content"].count("+") + 1
        for layout, channels in _layouts(port, views, image):
            colors = [image["color"]] if "color" in image else ["gray"] if channels == 1 else ["RGB", "BGR"]
            for color, numbers in itertools.product(
                colors, _numbers(port, color_count=channels, image=image)
            ):
                found.append(
                    {
                        "name": name,
                        **facts,
                        "input": inputs,
                        "image": {"layout": layout, "color": color, **numbers},
                        "size": _size(port.shape, layout, size),
                    }
                )
    return found


def outputs(
    graph: Graph, feeding: Table, given: Table, arrays: Mapping[str, NDArray[Any]], seen: tuple[int, int]
) -> list[ForeignSpec]:
    """Return the ways to read what a network computed from images of the size `seen`."""
    known = given.get("output", {})
    ports = graph.outputs if "name" not in known else [find(graph.outputs, known["name"])]
    found = []
    for port in ports:
        assert port is not None
        for options in _output_options(arrays[port.name], seen, known):
            table = {**feeding, "output": {"name": port.name, **options, **known}}
            found.append(ForeignSpec.from_table(table, "The reading"))
    return list(dict.fromkeys(found))


def _output_options(array: NDArray[Any], seen: tuple[int, int], known: Table) -> list[Table]:
    """Return the readings of one array: where height and width are, the channel, the sign and the unit."""
    resolutions = [known["resolution"]] if "resolution" in known else _RESOLUTIONS
    options: list[Table] = []
    for resolution in resolutions:
        sides = tuple(round(side * resolution) for side in seen)
        axes = [axis for axis in range(array.ndim - 1) if array.shape[axis : axis + 2] == sides]
        if not axes:
            continue
        channels = array.size // (sides[0] * sides[1])
        scales = [1.0] if resolution == 1 else [1.0, 1 / resolution]
        for channel, sign in itertools.product(range(min(channels, _MAX_CHANNELS)), ("positive", "negative")):
            common = {"channel": channel, "sign": sign, "resolution": float(resolution)}
            options += [{**common, "scale": scale, "unit": "pixel"} for scale in scales]
            options.append({**common, "scale": 1.0, "unit": "width"})
        break
    return options


def _require_known_names(graph: Graph, given: Table) -> None:
    """Raise an error if a spec names inputs or outputs that the network does not have."""
    wanted = [(graph.inputs, "input", each["name"]) for each in given.get("input", []) if "name" in each]
    if "name" in given.get("output", {}):
        wanted.append((graph.outputs, "output", given["output"]["name"]))
    for ports, kind, name in wanted:
        if find(ports, name) is None:
            known = ", ".join(port.name for port in ports)
            raise UnsupportedError(
                f"The network has no {kind} {name!r}, which the spec names; it has {known}."
            )


def _inputs(graph: Graph) -> list[list[Table]]:
    """Return what each input may take."""
    images = [port for port in graph.inputs if port.shape is None or len(port.shape) == 4]
    if len(images) != len(graph.inputs) or len(images) not in (1, 2, 4):
        shown = "; ".join(port.shown for port in graph.inputs)
        raise UnsupportedError(
            f"The network has inputs that are not one or two images ({shown}); describe them in a spec, with "
            "an [[input]] for each."
        )
    names = [port.name for port in images]
    if len(images) == 1:
        return [[{"name": names[0], "content": content}] for content in ("left+right", "right+left")]
    if len(images) == 2:
        return [_two(*pair) for pair in _orders(names)]
    return _coarse_and_fine(images)


def _two(left: str, right: str, scale: float = 1.0) -> list[Table]:
    return [
        {"name": left, "content": "left", "scale": scale},
        {"name": right, "content": "right", "scale": scale},
    ]


def _orders(names: list[str]) -> list[tuple[str, str]]:
    """Return the orders (left, right) of two inputs; their names may tell."""
    first, second = names
    told = {"left": [name for name in names if _names_side(name, "left")]}
    told["right"] = [name for name in names if _names_side(name, "right")]
    if len(told["left"]) == len(told["right"]) == 1 and told["left"] != told["right"]:
        return [(told["left"][0], told["right"][0])]
    return [(first, second), (second, first)]


def _names_side(name: str, side: str) -> bool:
    words = name.lower().replace("-", "_").replace(".", "_").replace(":", "_").split("_")
    return side in name.lower() or side[0] in words


def _coarse_and_fine(images: list[Port]) -> list[list[Table]]:
    """Return the inputs of a network that also takes the pair at half size, told by their names."""
    pairs = []
    for mark in ("init", "next"):
        pair = [port for port in images if mark in port.name.lower()]
        if len(pair) == 2 and len(_orders([port.name for port in pair])) == 1:
            pairs.append(_orders([port.name for port in pair])[0])
    if len(pairs) != 2:
        raise UnsupportedError(
            "The network has four inputs, and their names do not tell what they take; describe them in a "
            "spec, with an [[input]] for each."
        )
    return [[*_two(*pairs[0], scale=0.5), *_two(*pairs[1])]]


def _layouts(port: Port, views: int, image: Table) -> list[tuple[str, int]]:
    """Return the layouts with the channels of one image that the shape allows."""
    shape = port.shape or (None,) * 4
    sides = {"NCHW": shape[1], "NHWC": shape[3]}
    if "layout" in image:
        sides = {image["layout"]: sides[image["layout"]]}
    # A short side tells where the channels are.
    short = {layout: side for layout, side in sides.items() if side is not None and side < _SHORT}
    found = []
    for layout, side in (short or sides).items():
        counts = (1, 3) if side is None else (side // views,) if side % views == 0 else ()
        found += [(layout, count) for count in counts if count in (1, 3)]
    if "color" in image:
        found = [each for each in found if each[1] == (1 if image["color"] == "gray" else 3)]
    if not found:
        raise UnsupportedError(
            f"The input {port.shown} has no channels for {'both images' if views == 2 else 'an image'}; a "
            "network for stereo takes two images of 1 or 3 channels, or both stacked in 2 or 6."
        )
    return found


def _numbers(port: Port, color_count: int, image: Table) -> list[Table]:
    """Return the ranges and normalizations; what is given of them is all that there is."""
    given: Table = {key: image[key] for key in ("range", "mean", "std") if key in image}
    if given:
        return [{"range": [0.0, 1.0], **given}]
    if port.type.startswith(("int", "uint")):
        return [{"range": [0.0, 255.0]}]
    if color_count == 1:
        mean, std = sum(IMAGENET_MEAN) / 3, sum(IMAGENET_STD) / 3
        return [*_RANGES[:3], {"range": [0.0, 1.0], "mean": [mean], "std": [std]}]
    return list(_RANGES)


def _size(shape: Shape, layout: str, given: Table) -> Table:
    """Return the fixed size in the shape of an input, or what is given, or what suits most networks."""
    if shape is not None:
        height, width = shape[2:] if layout == "NCHW" else shape[1:3]
        if height is not None and width is not None:
            return {"height": height, "width": width}
    return given or {"multiple": _GUESSED_MULTIPLE, "minimum": 2 * _GUESSED_MULTIPLE}
