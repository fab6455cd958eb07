"""PyTorch → OpenVINO, once for all image sizes, without OpenVINO's own converter and its telemetry."""

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

# The operator as torchvision declares it.  OpenVINO knows it by this name.
_DEFORM_CONV = (
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
    "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
    "SymInt offset_groups, bool use_mask) -> Tensor"
)


def convert(network: StereoNetwork, size: tuple[int, int] | None = None) -> openvino.Model:
    """Return the network's `InferenceGraph` with free batch, height and width, or for one image of one size.

    `openvino.convert_model` does the same and reports home; its frontend does not.
    """
    name = network.architecture.builder
    if size is None and not zoo.card(name).one_graph:
        raise EngineUnavailableError(
            f"OpenVINO cannot run {name}, whose graph is another one for every image size; "
            "use the engine torch."
        )
    # A copy: what becomes a constant must not want gradients, and the caller may be training the network.
    graph = InferenceGraph(copy.deepcopy(network).eval().requires_grad_(False))
    side = network.sizes.round_up(2 * network.sizes.multiple)
    sides = size or (side, side)
    example = (torch.rand(1, 3, *sides), torch.rand(1, 3, *sides))
    shape = openvino.PartialShape([1, 3, *size] if size else [-1, 3, -1, -1])
    with torch.inference_mode(), using_deform_conv(_through_torchvision_operator), _without_trace_warnings():
        # A function instead of the module: its weights become constants at once, which takes half the time.
        traced = torch.jit.trace(lambda left, right: graph(left, right), example, check_trace=False)
        frontend = FrontEndManager().load_by_framework("pytorch")
        decoder = TorchScriptPythonDecoder(traced, shared_memory=False, skip_freeze=True)
        inputs = frontend.load(decoder)
        for place in inputs.get_inputs():
            inputs.set_element_type(place, openvino.Type.f32)
            inputs.set_partial_shape(place, shape)
        try:
            return frontend.convert(inputs)
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[-1]
            raise EngineUnavailableError(
                f"OpenVINO {openvino.__version__} cannot run {name}: {reason}"
            ) from error


def _through_torchvision_operator(given: DeformConvArguments) -> Tensor:
    """A deformable convolution as one node of the graph that OpenVINO has a kernel for."""
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
    """Define an operator of torchvision's name where torchvision is absent: tracing only needs its result.

    Returns:
        The definition, which lasts as long as this object.
    """
    if importlib.util.find_spec("torchvision") is not None:
        with contextlib.suppress(ImportError, RuntimeError):  # it may not fit the installed torch
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
    """Tracing warns of every shape that Python looks at, and of its own deprecation; none of it matters here.

    The shapes are looked at by checks, which hold for every size that the matcher feeds.
    """
    with warnings.catch_warnings():
        for category in (torch.jit.TracerWarning, DeprecationWarning, UserWarning):
            warnings.simplefilter("ignore", category)
        yield
