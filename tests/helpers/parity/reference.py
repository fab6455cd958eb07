"""What the authors' networks compute: checkpoint layouts, fixed weights, and thinned-out disparities.

`official_layouts.json.gz` has every key and shape of the six released layouts, in order.  `golden.npz` has a
pair of 96×192 and every third pixel, in both directions, of what five of the networks computed from it with
the weights of `make_state`.  PSMNet-AA needs at least 256×256 pixels; its disparities are those of this
package for `wave_pair`, recorded when it agreed with the authors' network on a full pair to 0.002 pixels.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
STEP = 3  # every third pixel was kept
# Bring the scores of each network to where a softmax is neither flat nor saturated.
SCORE_GAIN = {
    "aanet": 0.28,
    "aanet_plus": 0.83,
    "stereonet_aa": 5.4,
    "gcnet_aa": 0.11,
    "psmnet_aa": 0.001,
    "ganet_aa": 0.92,
}
Array = NDArray[np.float32]


def layouts() -> dict[str, dict[str, list[int]]]:
    """Key → shape of every tensor, for each network, in the order of the checkpoint."""
    loaded: dict[str, dict[str, list[int]]] = json.loads(
        gzip.decompress((HERE / "official_layouts.json.gz").read_bytes())
    )
    return loaded


def make_state(name: str) -> dict[str, NDArray[np.generic]]:
    """Weights from a fixed stream of random numbers, drawn in the order of the checkpoint."""
    generator = np.random.RandomState(2020)
    return {key: _draw(name, key, shape, generator) for key, shape in layouts()[name].items()}


def _draw(name: str, key: str, shape: list[int], rng: np.random.RandomState) -> NDArray[np.generic]:
    kind = key.rsplit(".", 1)[-1]
    if kind == "num_batches_tracked":
        return np.zeros(shape, np.int64)
    is_kernel = kind == "weight" and len(shape) > 1
    if kind == "running_var":
        values = rng.uniform(0.5, 1.5, shape)
    elif kind == "weight" and not is_kernel:
        values = rng.uniform(0.6, 1.2, shape)
    else:
        scale = 0.1
        if ".offset_conv." in key:
            scale = 0.02 if kind == "weight" else 0.3
        elif is_kernel:
            scale = np.prod(shape[1:]) ** -0.5
            if key.startswith("aggregation.final_conv"):
                scale *= SCORE_GAIN[name]
            elif key.startswith("refinement") and ".final_conv." in key:
                scale *= 0.1
        values = scale * rng.standard_normal(shape)
    return np.asarray(values, np.float32)


def golden_pair(name: str) -> tuple[Array, Array]:
    """The normalized pair [1, 3, H, W] that the disparities of a network belong to."""
    if name == "psmnet_aa":
        return wave_pair(288)
    golden = np.load(HERE / "golden.npz")
    return golden["left"], golden["right"]


def golden_disparities(name: str) -> list[Array]:
    """Every third pixel of the disparities, coarse to fine."""
    golden = np.load(HERE / "golden.npz")
    return [golden[key] for key in sorted(golden) if key.startswith(f"{name}/")]


def wave_pair(size: int) -> tuple[Array, Array]:
    """Colored waves of several lengths, the right view 12 pixels further on, [1, 3, size, size]."""
    y, x = np.mgrid[:size, : size + 12].astype(np.float64)
    channels = [
        np.sin(x / 3.1 + c) + np.sin(y / 4.7 - c) * np.cos((x + 2 * y) / 17.3 + 2 * c) for c in range(3)
    ]
    scene = np.stack(channels)[None].astype(np.float32)
    return np.ascontiguousarray(scene[..., :-12]), np.ascontiguousarray(scene[..., 12:])
