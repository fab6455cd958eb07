"""Network → OpenVINO IR: an .xml file and the .bin file of its weights beside it."""

from __future__ import annotations

from pathlib import Path

import openvino

from aanet.engines.conversion import convert
from aanet.export.metadata import SECTION, Description
from aanet.models.network import StereoNetwork


def write_openvino(network: StereoNetwork, description: Description, path: Path) -> None:
    """Write a network, simplified for export, with its description in the model's runtime information."""
    model = convert(network, description.size)
    for place, name in enumerate(("left", "right")):
        model.inputs[place].get_tensor().set_names({name})
    for place, name in enumerate(("disparity", "confidence")):
        model.outputs[place].get_tensor().set_names({name})
    for key, value in description.properties().items():
        model.set_rt_info(value, [SECTION, key])
    openvino.save_model(model, path, compress_to_fp16=description.storage == "float16")
