"""Export to OpenVINO IR: an .xml file, and a .bin file with the weights next to it."""

from __future__ import annotations

from pathlib import Path

import openvino
from openvino import opset13

from aanet.engines.openvino.conversion import to_openvino
from aanet.engines.openvino.pair_files import digest, save_model
from aanet.export.half import as_half
from aanet.inference.description import SECTION, WEIGHTS_DIGEST, Description
from aanet.models.network import StereoNetwork


def write_openvino(network: StereoNetwork, description: Description, path: Path) -> None:
    """Write a network, prepared by `simplify`, with its description in the model's runtime information."""
    model = to_openvino(network, description.size)
    for index, name in enumerate(("left", "right")):
        model.inputs[index].get_tensor().set_names({name})
    for index, name in enumerate(("disparity", "confidence")):
        model.outputs[index].get_tensor().set_names({name})
    for key, value in description.properties().items():
        model.set_rt_info(value, [SECTION, key])
    if description.storage == "float16":
        _store_as_half(model)
    save_model(model, path)
    # The digest ties the two files together; the metadata does not change the .bin file.
    model.set_rt_info(digest(path.with_suffix(".bin").read_bytes()), [SECTION, WEIGHTS_DIGEST])
    save_model(model, path)


def _store_as_half(model: openvino.Model) -> None:
    """Store rounded kernels as float16 and convert them to float32 where they are used."""
    for constant in model.get_ordered_ops():
        if constant.get_type_name() != "Constant" or constant.get_element_type() != openvino.Type.f32:
            continue
        half = as_half(constant.data)
        if half is None:
            continue
        restored = opset13.convert(opset13.constant(half), "f32").output(0)
        for target in constant.output(0).get_target_inputs():
            target.replace_source_output(restored)
