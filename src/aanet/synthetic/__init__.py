"""A procedural stereo dataset: rooms, streets, table tops and cut-out photographs with exact disparity.

`SyntheticWorld` is the dataset; `render_scene` renders a scene without camera effects.
"""

from __future__ import annotations

from aanet.synthetic.render import RenderedPair, render_scene
from aanet.synthetic.surfaces import Scene, Surface
from aanet.synthetic.world import KIND_WEIGHTS, SyntheticWorld, prepare_worker

__all__ = [
    "KIND_WEIGHTS",
    "RenderedPair",
    "Scene",
    "Surface",
    "SyntheticWorld",
    "prepare_worker",
    "render_scene",
]
