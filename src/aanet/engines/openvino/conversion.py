"""Conversion from PyTorch to OpenVINO, once for all image sizes and without OpenVINO's telemetry."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib.util
import warnings
from collections.abc import Iterator

import openvino
import torch
from openvino.frontend import FrontEndManager
from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder
from torch import Tensor

from aanet.engines.graph import InferenceGraph
from aanet.inference.spec import EngineUnavailableError
from aanet.models import zoo
from aanet.models.network import StereoNetwork
from aanet.ops.deform_conv import DeformConvArguments, deform_conv2d_bags, using_deform_conv

# The declaration of torchvision's operator, which OpenVINO's frontend converts to its own kernel.
_DEFORM_CONV = (
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
    "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
    "SymInt offset_groups, bool use_mask) -> Tensor"
)


def to_openvino(network: StereoNetwork, size: tuple[int, int] | None = None) -> openvino.Model:
    """Convert a network's `InferenceGraph` to OpenVINO.

    This uses OpenVINO's frontend directly, because `openvino.convert_model` sends telemetry.

    Args:
        network: The network.
        size: Height and width of a model for single images; None for dynamic batch, height and width.
    """
    name = network.architecture.builder
    if size is None and not zoo.card(name).dynamic_shapes:
        raise EngineUnavailableError(
            f"OpenVINO cannot run {name}, whose graph depends on the image size; use the engine torch."
        )
    # Constants of the graph must not require gradients; the copy leaves the caller's network unchanged.
    graph = InferenceGraph(copy.deepcopy(network).eval().requires_grad_(False))
    side = network.sizes.round_up(2 * network.sizes.multiple)
    sides = size or (side, side)
    example = (torch.rand(1, 3, *sides), torch.rand(1, 3, *sides))
    shape = openvino.PartialShape([1, 3, *size] if size else [-1, 3, -1, -1])
    with torch.inference_mode(), using_deform_conv(_through_torchvision_operator), _without_trace_warnings():
        # Tracing a function instead of the module turns weights into constants at once, in half the time.
        traced = torch.jit.trace(lambda left, right: graph(left, right), example, check_trace=False)
        frontend = FrontEndManager().load_by_framework("pytorch")
        decoder = TorchScriptPythonDecoder(traced, shared_memory=False, skip_freeze=True)
        inputs = frontend.load(decoder)
        for tensor in inputs.get_inputs():
            inputs.set_element_type(tensor, openvino.Type.f32)
            inputs.set_partial_shape(tensor, shape)
        try:
            return frontend.convert(inputs)
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[-1]
            raise EngineUnavailableError(
                f"OpenVINO {openvino.__version__} cannot run {name}: {reason}"
            ) from error


def _through_torchvision_operator(given: DeformConvArguments) -> Tensor:
    """Compute a deformable convolution as a single graph node, for which OpenVINO has a kernel."""
    x, weight = given.x, given.weight
    groups = int(x.shape[1]) // weight.shape[1]
    deform_groups = int(given.mask.shape[1]) // (weight.shape[2] * weight.shape[3])
    bias = x.new_zeros(weight.shape[0]) if given.bias is None else given.bias
    sizes = [value for value in (given.stride, given.padding, given.dilation) for _ in range(2)]
    _ensure_torchvision_operator()
    output: Tensor = torch.ops.torchvision.deform_conv2d(
        x, weight, given.offset, given.mask, bias, *sizes, groups, deform_groups, True
    )
    return output


@functools.cache
def _ensure_torchvision_operator() -> torch.library.Library | None:
    """Define torchvision's operator if torchvision is missing; tracing needs only its name and its result.

    Returns:
        The library object, whose lifetime is that of the definition.
    """
    if importlib.util.find_spec("torchvision") is not None:
        with contextlib.suppress(ImportError, RuntimeError):  # it may not match the installed torch
            import torchvision  # noqa: F401 - importing it registers the operator
    if hasattr(torch.ops.torchvision, "deform_conv2d"):
        return None
    library = torch.library.Library("torchvision", "FRAGMENT")
    library.define(_DEFORM_CONV)
    library.impl("deform_conv2d", _deform_conv2d, "CompositeExplicitAutograd")
    return library


def _deform_conv2d(
    x: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, *sizes: int
) -> Tensor:
    stride, padding, dilation = sizes[0:6:2]
    return deform_conv2d_bags(DeformConvArguments(x, offset, mask, weight, bias, stride, padding, dilation))


@contextlib.contextmanager
def _without_trace_warnings() -> Iterator[None]:
    """Suppress warnings of tracing about its deprecation and about shapes that Python code reads.

    Shapes are only read by checks, which pass for every size that a matcher uses.
    """
    with warnings.catch_warnings():
        for category in (torch.jit.TracerWarning, DeprecationWarning, UserWarning):
            warnings.simplefilter("ignore", category)
        yield
