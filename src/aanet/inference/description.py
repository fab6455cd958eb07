"""The description of an exported network, which is stored in the metadata of its file.

It is read without torch, which a prediction from an exported file does not need.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aanet.errors import ReadError
from aanet.inference.hints import MAX_WIDTH, InferenceHints
from aanet.inference.size_rule import SizeRule
from aanet.inference.spec import NetworkSpec
from aanet.version import __version__

FORMAT = "aanet-export-1"
LICENSE = "Apache-2.0"
DYNAMIC = "dynamic"
SECTION = "aanet"  # in the runtime information of an OpenVINO model
WEIGHTS_DIGEST = "weights_file_sha256"  # there as well: the digest of the .bin file
ARCHIVE_FILE = "aanet.json"  # inside the archive of a `torch.export` program
# What a program that runs the file must know, for every network.
_INTERFACE = {
    "format": FORMAT,
    "inputs": "left, right: float32 [B, 3, H, W], RGB in 0 … 1, of a rectified pair",
    "outputs": "disparity: float32 [B, H, W], pixels, left(x) matches right(x - d); "
    "confidence: float32 [B, H, W], 0 … 1",
    "normalization": "inside the graph (ImageNet mean and deviation); feed RGB in 0 … 1",
    "license": LICENSE,
}


@dataclass(frozen=True)
class Description:
    """An exported network.

    Attributes:
        spec: What a matcher must know about the network.
        weights: "sha256:" and the digest of the weight file that was exported, or "random".
        size: The height and width of its inputs, or None for any size that the network takes.
        deformable_convolution: "native", "decomposed", or "none" where the network has none.
        storage: Type of the stored weights, "float32" or "float16"; it computes in float32.
    """

    spec: NetworkSpec
    weights: str
    size: tuple[int, int] | None = None
    deformable_convolution: str = "none"
    storage: str = "float32"

    def properties(self) -> dict[str, str]:
        """Return all fields as text, for the metadata of any format."""
        return {
            **_INTERFACE,
            "network": self.spec.name,
            "weights": self.weights,
            "size": DYNAMIC if self.size is None else f"{self.size[0]}x{self.size[1]}",
            "size_multiple": str(self.spec.sizes.multiple),
            "minimum_size": str(self.spec.sizes.minimum),
            "max_disparity": str(self.spec.max_disparity),
            "candidate_step": str(self.spec.candidate_step),
            "bytes_per_pixel": str(self.spec.bytes_per_pixel),
            "correlates": str(self.spec.correlates).lower(),
            "upscale_to": str(self.spec.hints.upscale_to),
            "sharpen_edges": str(self.spec.hints.sharpen_edges).lower(),
            "fill_border": str(self.spec.hints.fill_border).lower(),
            "deformable_convolution": self.deformable_convolution,
            "storage": self.storage,
            "aanet_version": __version__,
        }


def parse(properties: Mapping[str, str], path: Path) -> Description:
    """Read the fields that `Description.properties` wrote."""
    found = properties.get("format")
    if found is None:
        raise ReadError(
            f"{path} does not describe its network; only files written by `aanet export` can be used."
        )
    if found != FORMAT:
        raise ReadError(f"{path} has the format {found}; this version of aanet reads {FORMAT}.")
    try:
        height, _, width = properties["size"].partition("x")
        size = None if properties["size"] == DYNAMIC else (_whole(height), _whole(width))
        return Description(
            spec=NetworkSpec(
                name=properties["network"],
                max_disparity=_whole(properties["max_disparity"]),
                bytes_per_pixel=_whole(properties["bytes_per_pixel"], most=10**6),
                correlates=properties["correlates"] == "true",
                candidate_step=_whole(properties["candidate_step"]),
                sizes=SizeRule(_whole(properties["size_multiple"]), _whole(properties["minimum_size"])),
                hints=InferenceHints(
                    # A file for one size cannot match upscaled images.
                    upscale_to=0 if size else _whole(properties["upscale_to"], least=0, most=MAX_WIDTH),
                    sharpen_edges=properties["sharpen_edges"] == "true",
                    fill_border=properties["fill_border"] == "true",
                ),
            ),
            weights=properties["weights"],
            size=size,
            deformable_convolution=properties["deformable_convolution"],
            storage=properties["storage"],
        )
    except (KeyError, ValueError, AttributeError, TypeError) as error:
        raise ReadError(f"The description inside {path} is damaged: {error}.") from error


def _whole(text: str, least: int = 1, most: int = 65536) -> int:
    """Return a whole number within bounds, or raise a ValueError."""
    number = int(text)
    if not least <= number <= most:
        raise ValueError(f"{number} is not within {least} … {most}")
    return number
