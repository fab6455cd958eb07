"""Entry points of `torch.hub`: one per network, and the matcher.

    network = torch.hub.load(REPOSITORY, "aanet_fast")                        # with the bundled weights
    network = torch.hub.load(REPOSITORY, "psmnet", pretrained=False)          # newly initialized
    network = torch.hub.load(REPOSITORY, "aanet", weights="a/file.safetensors")
    matcher = torch.hub.load(REPOSITORY, "stereo_matcher")                    # images in, depth out

REPOSITORY is the owner and name of a repository on GitHub, or the folder of a clone with source="local".
"""

from __future__ import annotations

import sys as _sys
from collections.abc import Callable as _Callable
from pathlib import Path as _Path
from typing import Any as _Any

# torch.hub itself puts only this folder on the path, and only while it imports this file.
_sys.path.insert(0, str(_Path(__file__).resolve().parent / "src"))

from aanet import StereoMatcher as _StereoMatcher
from aanet.errors import InputError as _InputError
from aanet.models.network import StereoNetwork as _StereoNetwork
from aanet.models.weights import checkpoint as _checkpoint
from aanet.models.weights.files import bundled_names as _bundled_names
from aanet.models.zoo import NETWORKS as _NETWORKS
from aanet.models.zoo import build as _build

dependencies = ["torch", "numpy", "cv2", "safetensors"]  # checked by torch.hub


def stereo_matcher(model: str | None = None, /, **options: _Any) -> _StereoMatcher:
    """Return `aanet.StereoMatcher(model, **options)`: images in, disparity, depth and points out."""
    return _StereoMatcher(**options) if model is None else _StereoMatcher(model, **options)


def _entry_point(name: str) -> _Callable[..., _StereoNetwork]:
    def network(
        pretrained: bool = True, weights: str | None = None, max_disparity: int | None = None
    ) -> _StereoNetwork:
        if weights is None and not pretrained:
            return _build(name, **({} if max_disparity is None else {"max_disparity": max_disparity}))
        if weights is None and name not in _bundled_names():
            raise _InputError(
                f"There are no bundled weights of {name}, only of {', '.join(_bundled_names())}; "
                "give weights=FILE, or pretrained=False for new ones."
            )
        loaded = _checkpoint.load(weights or name, max_disparity=max_disparity)
        if loaded.architecture.builder != name:
            raise _InputError(f"{weights} contains weights of {loaded.architecture.builder}, not of {name}.")
        return loaded

    network.__name__ = name
    network.__doc__ = f"""{_NETWORKS[name].title}, a `torch.nn.Module` for pairs of normalized images.

    Args:
        pretrained: Whether to load the bundled weights; otherwise the weights are newly initialized.
        weights: A file of this package or a checkpoint of the authors, instead of the bundled weights.
        max_disparity: The search range in pixels; by default that of the weights, or 192.
    """
    return network


globals().update({name: _entry_point(name) for name in _NETWORKS})
