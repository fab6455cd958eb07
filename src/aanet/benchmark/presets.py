"""Networks and image sizes of the presets of `aanet benchmark`."""

from __future__ import annotations

from aanet.benchmark.memory import peak_memory
from aanet.errors import AanetError
from aanet.inference.memory import available_memory
from aanet.models import zoo

DEFAULT_NETWORKS = ("aanet", "aanet_plus", "stereonet_aa")
DEFAULT_MATCHERS = ("aanet_fast", "aanet", "stereonet_aa", "sgbm")  # of error against time
# Multiples of 96 and at least 256, which all eight networks take; the first is the paper's size.
PAPER_SIZES = ((576, 960), (480, 768), (384, 672), (288, 480))
SHARE_OF_MEMORY = 0.8
_PROBE = (96, 192)


def paper_networks() -> list[str]:
    """The networks of the paper's table 2: each with 3D convolutions, then with adaptive aggregation."""
    return [name for pair in zoo.replaced_3d().items() for name in pair]


def largest_common_size() -> tuple[int, int]:
    """Return the largest of `PAPER_SIZES` at which all networks fit into memory.

    Memory is proportional to the number of pixels, so it is measured at a small size.
    """
    hungriest = max(paper_networks(), key=lambda name: zoo.card(name).bytes_per_pixel)
    per_pixel = peak_memory(hungriest, _PROBE) / (_PROBE[0] * _PROBE[1])
    budget = SHARE_OF_MEMORY * available_memory()
    for height, width in PAPER_SIZES:
        if per_pixel * height * width <= budget:
            return height, width
    height, width = PAPER_SIZES[-1]
    needed = per_pixel * height * width / 2**30
    raise AanetError(f"{hungriest} needs {needed:.1f} GB at {height}×{width}, more than is free.")
