"""Learned stereo matching that runs anywhere: AANet (CVPR 2020) and the networks it was compared with."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from aanet.version import __version__

if TYPE_CHECKING:
    from aanet.data.motorcycle import sample_pair as sample_pair
    from aanet.errors import AanetError as AanetError
    from aanet.geometry.calibration import load_calibration as load_calibration
    from aanet.geometry.camera import StereoCamera as StereoCamera
    from aanet.geometry.rectification import Calibration as Calibration
    from aanet.inference.options import MatchOptions as MatchOptions
    from aanet.io.frames import StereoVideo as StereoVideo
    from aanet.matcher import StereoMatcher as StereoMatcher
    from aanet.models.weights.checkpoint import load as load_network
    from aanet.models.zoo import build as build_network
    from aanet.result import StereoResult as StereoResult
    from aanet.rig.calibrate import calibrate as calibrate

# Public name → where it lives. Imported on first use: `import aanet` and `aanet --help` stay instant.
_PUBLIC = {
    "AanetError": ("aanet.errors", "AanetError"),
    "Calibration": ("aanet.geometry.rectification", "Calibration"),
    "MatchOptions": ("aanet.inference.options", "MatchOptions"),
    "StereoCamera": ("aanet.geometry.camera", "StereoCamera"),
    "StereoMatcher": ("aanet.matcher", "StereoMatcher"),
    "StereoResult": ("aanet.result", "StereoResult"),
    "StereoVideo": ("aanet.io.frames", "StereoVideo"),
    "build_network": ("aanet.models.zoo", "build"),
    "calibrate": ("aanet.rig.calibrate", "calibrate"),
    "load_calibration": ("aanet.geometry.calibration", "load_calibration"),
    "load_network": ("aanet.models.weights.checkpoint", "load"),
    "sample_pair": ("aanet.data.motorcycle", "sample_pair"),
}

__all__ = [
    "AanetError",
    "Calibration",
    "MatchOptions",
    "StereoCamera",
    "StereoMatcher",
    "StereoResult",
    "StereoVideo",
    "__version__",
    "build_network",
    "calibrate",
    "load_calibration",
    "load_network",
    "sample_pair",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'aanet' has no attribute {name!r}")
    module, attribute = _PUBLIC[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
