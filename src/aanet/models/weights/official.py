"""Detecting and translating the checkpoints that the authors released.

The authors released AANet, AANet+ and the four other AA networks. The architecture of a file is detected from
its keys and shapes, which must be exactly those of one of these networks.
"""

from __future__ import annotations

import contextlib
import functools
import re
from dataclasses import dataclass

import torch
from torch import Tensor

from aanet.errors import InputError, ReadError
from aanet.inference.spec import MAX_DISPARITY
from aanet.models import zoo

Shapes = dict[str, tuple[int, ...]]
Rule = tuple[str, str]  # a regular expression and its replacement
Part = tuple[str, str, list[Rule]]  # prefix of our keys, prefix of theirs, and rules for the rest of the key

_BOTTLENECK: list[Rule] = [
    (r"\breduce\.0\.", "conv1."),
    (r"\breduce\.1\.", "bn1."),
    (r"\bwindow\.0\.", "conv2."),
    (r"\bwindow\.1\.", "bn2."),
    (r"\bexpand\.0\.", "conv3."),
    (r"\bexpand\.1\.", "bn3."),
    (r"\bshortcut\.", "downsample."),
]
_LEAKY_RESIDUAL: list[Rule] = [
    (r"\bbody\.0\.0\.", "conv1."),
    (r"\bbody\.0\.1\.", "bn1."),
    (r"\bbody\.1\.0\.", "conv2."),
    (r"\bbody\.1\.1\.", "bn2."),
]
_PLAIN_RESIDUAL: list[Rule] = [
    (r"\bbody\.0\.", "conv1.0."),
    (r"\bbody\.1\.", "conv2."),
    (r"\bshortcut\.", "downsample."),
]
_NAMED_CONV_NORM: list[Rule] = [(r"\.0\.(\w+)$", r".conv.\1"), (r"\.1\.(\w+)$", r".bn.\1")]
_HOURGLASS: list[Rule] = [
    *((rf"^down_first\.{i}\.", f"conv{i + 1}a.") for i in range(4)),
    *((rf"^up_first\.{i}\.", f"deconv{4 - i}a.") for i in range(4)),
    *((rf"^down_second\.{i}\.", f"conv{i + 1}b.") for i in range(4)),
    *((rf"^up_second\.{i}\.", f"deconv{4 - i}b.") for i in range(4)),
    (r"\bresample\.", "conv1."),
    (r"\bfuse\.", "conv2."),
    *_NAMED_CONV_NORM,
]

_AGGREGATION: list[Part] = [
    (r"aggregation\.stack\.(\d)\.intra_scale\.(\d)\.", r"aggregation.fusions.\1.branches.\2.0.", _BOTTLENECK),
    (r"aggregation\.stack\.(\d)\.cross_scale\.paths\.", r"aggregation.fusions.\1.fuse_layers.", []),
    (r"aggregation\.scores\.", "aggregation.final_conv.", []),
]
_WARPED: list[Part] = [
    (r"refinement\.steps\.(\d)\.image_conv\.", r"refinement.\1.conv1.", []),
    (r"refinement\.steps\.(\d)\.disparity_conv\.", r"refinement.\1.conv2.", []),
    (r"refinement\.steps\.(\d)\.residual\.", r"refinement.\1.final_conv.", []),
]
_DILATED: list[Part] = [
    (r"refinement\.steps\.(\d)\.body\.", r"refinement.\1.dilated_blocks.", _LEAKY_RESIDUAL),
]
_COLOR: list[Part] = [
    (r"refinement\.steps\.(\d)\.start\.", r"refinement.\1.conv.", []),
    (r"refinement\.steps\.(\d)\.residual\.", r"refinement.\1.final_conv.", []),
]
_PYRAMID: list[Part] = [
    (r"features\.coarser\.0\.0\.", "fpn.out1.", []),
    (r"features\.coarser\.1\.0\.", "fpn.out2.", []),
    (r"features\.coarser\.0\.1\.", "fpn.out1.", [(r"^0\.", "3."), (r"^1\.", "4.")]),
    (r"features\.coarser\.1\.1\.", "fpn.out2.", [(r"^0\.", "3."), (r"^1\.", "4.")]),
]
_GANET: list[Part] = [
    (r"features\.base\.start\.", "feature_extractor.conv_start.", _NAMED_CONV_NORM),
    (r"features\.base\.hourglass\.", "feature_extractor.", _HOURGLASS),
]

OFFICIAL_PARTS: dict[str, list[Part]] = {
    "aanet": [
        (r"features\.stem\.", "feature_extractor.conv1.", []),
        (r"features\.stages\.0\.", "feature_extractor.layer1.", _BOTTLENECK),
        (r"features\.stages\.1\.", "feature_extractor.layer2.", _BOTTLENECK),
        (r"features\.stages\.2\.", "feature_extractor.layer3.", _BOTTLENECK),
        (r"features\.pyramid\.lateral\.", "fpn.lateral_convs.", []),
        (r"features\.pyramid\.smooth\.", "fpn.fpn_convs.", []),
        *_AGGREGATION,
        *_WARPED,
        *_DILATED,
    ],
    "aanet_plus": [
        *_GANET,
        *_PYRAMID,
        *_AGGREGATION,
        *_WARPED,
        (r"refinement\.steps\.(\d)\.body\.0\.", r"refinement.\1.conv_start.", []),
        (r"refinement\.steps\.(\d)\.body\.1\.", r"refinement.\1.", _HOURGLASS),
    ],
    "ganet_aa": [*_GANET, *_PYRAMID, *_AGGREGATION, *_WARPED, *_DILATED],
    "psmnet_aa": [
        *((rf"features\.base\.start\.{i}\.", f"feature_extractor.firstconv.{2 * i}.", []) for i in range(3)),
        (r"features\.base\.quarter\.0\.", "feature_extractor.layer1.", _PLAIN_RESIDUAL),
        (r"features\.base\.quarter\.1\.", "feature_extractor.layer2.", _PLAIN_RESIDUAL),
        (r"features\.base\.context\.0\.", "feature_extractor.layer3.", _PLAIN_RESIDUAL),
        (r"features\.base\.context\.1\.", "feature_extractor.layer4.", _PLAIN_RESIDUAL),
        *((rf"features\.base\.pooling\.{i}\.", f"feature_extractor.branch{i + 1}.", []) for i in range(4)),
        (r"features\.base\.fuse\.0\.", "feature_extractor.lastconv.0.", []),
        (r"features\.base\.fuse\.1\.", "feature_extractor.lastconv.2.", []),
        *_PYRAMID,
        *_AGGREGATION,
        *_WARPED,
        *_DILATED,
    ],
    "gcnet_aa": [
        (r"features\.base\.start\.", "feature_extractor.conv1.", []),
        (r"features\.base\.blocks\.", "feature_extractor.conv2.", _PLAIN_RESIDUAL),
        (r"features\.base\.last\.", "feature_extractor.conv3.", []),
        *_PYRAMID,
        *_AGGREGATION,
        *_WARPED,
        *_DILATED,
    ],
    "stereonet_aa": [
        (r"features\.downsample\.", "feature_extractor.downsample.", []),
        (r"features\.blocks\.", "feature_extractor.residual_blocks.", _LEAKY_RESIDUAL),
        (r"features\.last\.", "feature_extractor.final_conv.", []),
        *_AGGREGATION,
        *_COLOR,
        *_DILATED,
    ],
}


def official_key(key: str, parts: list[Part]) -> str:
    """Translate one of our keys, in which deformable convolutions already have the authors' two names."""
    for ours, theirs, rules in parts:
        match = re.match(ours, key)
        if match:
            rest = key[match.end() :]
            for pattern, replacement in rules:
                rest = re.sub(pattern, replacement, rest)
            return match.expand(theirs) + rest
    raise KeyError(f"no rule for the key {key}")


@dataclass(frozen=True)
class OfficialLayout:
    """The keys and shapes of a network in the authors' checkpoints."""

    name: str
    max_disparity: int
    training_heads: bool
    keys: dict[str, str]  # the authors' key → ours
    shapes: Shapes  # by the authors' key


@functools.cache
def layout_of(name: str, max_disparity: int, training_heads: bool) -> OfficialLayout:
    """Return the keys and shapes of the authors' checkpoint of this network."""
    with torch.device("meta"):
        network = zoo.card(name).build(max_disparity, training_heads)
    state = network.state_dict()
    deformable = {key.removesuffix(".offset_predictor.weight") for key in state if "offset_predictor" in key}
    keys, shapes = {}, {}
    for key, tensor in state.items():
        module, _, leaf = key.rpartition(".")
        named = f"{module}.deform_conv.{leaf}" if module in deformable else key
        theirs = official_key(named.replace("offset_predictor", "offset_conv"), OFFICIAL_PARTS[name])
        keys[theirs] = key
        shapes[theirs] = tuple(tensor.shape)
    return OfficialLayout(name, max_disparity, training_heads, keys, shapes)


def detect(state: dict[str, Tensor]) -> OfficialLayout:
    """Find the network whose keys and shapes are exactly those of the state dict."""
    shapes: Shapes = {key: tuple(tensor.shape) for key, tensor in state.items()}
    candidates = []
    for name in OFFICIAL_PARTS:
        layout = _layout_like(name, shapes)
        if layout.shapes == shapes:
            return layout
        candidates.append(layout)
    closest = min(candidates, key=lambda layout: len(differences(layout.shapes, shapes)))
    raise ReadError(
        f"The weights match none of the supported networks; the closest is {zoo.card(closest.name).title}, "
        f"which differs in: {summary(differences(closest.shapes, shapes))}."
    )


def _layout_like(name: str, shapes: Shapes) -> OfficialLayout:
    """Return the layout of a network for the maximum disparity and training heads that the shapes suggest."""
    training_heads = "aggregation.final_conv.1.weight" in shapes
    candidates = (*shapes.get("aggregation.final_conv.0.weight", ()), 0)[0]
    pixels = candidates * _finest_scale(name)
    if 0 < pixels <= MAX_DISPARITY:
        with contextlib.suppress(InputError):  # not a valid maximum disparity of this network
            return layout_of(name, pixels, training_heads)
    return layout_of(name, 192, training_heads)


@functools.cache
def _finest_scale(name: str) -> int:
    """Image pixels per candidate of the network's finest cost volume."""
    with torch.device("meta"):
        return zoo.card(name).build(192, False).features.scales[0]


def differences(expected: Shapes, found: Shapes) -> list[str]:
    """Describe the differences of two sets of shapes, wrong shapes first."""
    wrong = [
        f"{key} is {list(found[key])} instead of {list(shape)}"
        for key, shape in expected.items()
        if key in found and found[key] != shape
    ]
    missing = [f"{key} is missing" for key in expected if key not in found]
    extra = [f"{key} is unexpected" for key in found if key not in expected]
    return wrong + missing + extra


def summary(differences: list[str]) -> str:
    """Join the first three differences and count the rest."""
    rest = len(differences) - 3
    return "; ".join(differences[:3]) + (f"; and {rest} more" if rest > 0 else "")
