"""Both forms of the deformable convolution are the loop of equation 4, in values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aanet.errors import AanetError
from aanet.ops import deform_conv2d
from aanet.ops.deform_conv import (
    DeformConvArguments,
    _torchvision_operator,
    deform_conv2d_bags,
    deform_conv2d_grid,
    using_deform_conv,
)
from helpers import naive

Form = Callable[..., Tensor]


def bags(*arguments: object) -> Tensor:
    return deform_conv2d_bags(DeformConvArguments(*arguments))


def grid(*arguments: object) -> Tensor:
    return deform_conv2d_grid(DeformConvArguments(*arguments))


both_forms = pytest.mark.parametrize("form", [bags, grid])


class Case(NamedTuple):
    """The sizes of one deformable convolution."""

    batch: int = 1
    inputs: int = 4
    outputs: int = 4
    size: tuple[int, int] = (4, 5)
    kernel: tuple[int, int] = (3, 3)
    stride: int = 1
    padding: int = 1
    dilation: int = 1
    groups: int = 1
    deform_groups: int = 1

    @property
    def steps(self) -> tuple[int, int, int]:
        """Stride, padding and dilation, in the order of the operator."""
        return self.stride, self.padding, self.dilation

    def arguments(self, dtype: torch.dtype = torch.float64, reach: float = 1.5) -> list[Tensor]:
        """Random input, offset, mask, weight and bias; offsets of about `reach` pixels leave the map, too."""
        generator = torch.Generator().manual_seed(5)

        def random(*shape: int) -> Tensor:
            return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

        x = random(self.batch, self.inputs, *self.size)
        weight = random(self.outputs, self.inputs // self.groups, *self.kernel)
        height, width = F.conv2d(x, weight, None, *self.steps, self.groups).shape[2:]
        points = self.kernel[0] * self.kernel[1] * self.deform_groups
        offset = reach * random(self.batch, 2 * points, height, width)
        mask = torch.sigmoid(random(self.batch, points, height, width))
        return [x, offset, mask, weight, random(self.outputs)]


CASES = {
    "kernel 1": Case(kernel=(1, 1), padding=0),
    "kernel 3": Case(),
    "kernel 2x3": Case(kernel=(2, 3)),
    "kernel 3x1": Case(kernel=(3, 1), padding=0),
    "no padding": Case(padding=0),
    "stride 2": Case(stride=2, size=(5, 6)),
    "dilation 2": Case(dilation=2, padding=2),
    "stride 2 and dilation 2": Case(stride=2, dilation=2, padding=2),
    "two deformable groups": Case(deform_groups=2),
    "two groups": Case(groups=2, outputs=6),
    "four groups, two deformable": Case(groups=4, deform_groups=2, outputs=8, size=(3, 3)),
    "two groups, four deformable": Case(groups=2, deform_groups=4, outputs=2, size=(3, 3)),
    "batch of two": Case(batch=2, inputs=2, outputs=3, size=(3, 4)),
    "width 1": Case(size=(5, 1)),
    "height 1": Case(size=(1, 5), deform_groups=2),
    "one pixel": Case(size=(1, 1), dilation=2, padding=2),
}
all_cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


@both_forms
@all_cases
def test_values_and_gradients_are_those_of_the_loop(form: Form, case: Case) -> None:
    naive.assert_same_values_and_gradients(
        lambda *inputs: form(*inputs, *case.steps),
        lambda *inputs: naive.deform_conv2d(*inputs, *case.steps),
        *case.arguments(),
    )


@both_forms
@pytest.mark.parametrize(
    "case",
    [
        Case(batch=2, inputs=2, outputs=2, size=(2, 3), kernel=(2, 2), deform_groups=2),
        Case(inputs=4, outputs=2, size=(3, 3), stride=2, dilation=2, padding=2, groups=2),
    ],
)
def test_gradcheck(form: Form, case: Case) -> None:
    inputs = [x.requires_grad_() for x in case.arguments()]
    assert torch.autograd.gradcheck(lambda *given: form(*given, *case.steps), inputs)


@both_forms
@all_cases
def test_without_offsets_it_is_an_ordinary_convolution(form: Form, case: Case) -> None:
    x, offset, mask, weight, bias = case.arguments()
    ours = form(x, torch.zeros_like(offset), torch.ones_like(mask), weight, bias, *case.steps)
    torch.testing.assert_close(ours, F.conv2d(x, weight, bias, *case.steps, case.groups))


@both_forms
def test_offsets_are_y_then_x_in_pixels(form: Form) -> None:
    x, offset, mask, weight, bias = Case(size=(6, 7)).arguments()
    moved = torch.zeros_like(offset)
    moved[:, 0::2] = -1  # y: one row up, so what stood below appears later
    moved[:, 1::2] = 2  # x: two columns to the right
    shifted = F.pad(x, (0, 2, 1, 0))[:, :, :6, 2:]
    ours = form(x, moved, torch.ones_like(mask), weight, bias, 1, 1, 1)
    plain = F.conv2d(shifted, weight, bias, padding=1)
    # Near the border the shift brings pixels from where the shifted copy has its own zeros.
    torch.testing.assert_close(ours[:, :, 2:-1, 1:-3], plain[:, :, 2:-1, 1:-3])


@both_forms
@pytest.mark.parametrize("distance", [10.0, 1e4, 1e9, 1e18])
@pytest.mark.parametrize("sign", [-1, 1])
def test_far_outside_there_is_nothing(form: Form, distance: float, sign: int) -> None:
    x, offset, mask, weight, bias = Case().arguments(torch.float32)
    x.requires_grad_()
    output = form(x, torch.full_like(offset, sign * distance), mask, weight, bias, 1, 1, 1)
    torch.testing.assert_close(output, bias.view(1, -1, 1, 1).expand_as(output))
    output.sum().backward()
    assert x.grad is not None
    assert not x.grad.any()


@both_forms
def test_half_a_pixel_outside_is_half_of_the_border(form: Form) -> None:
    x = torch.full((1, 1, 3, 3), 8.0)
    offset = torch.zeros(1, 2, 3, 3)
    offset[:, 1] = -0.5
    output = form(x, offset, torch.ones(1, 1, 3, 3), torch.ones(1, 1, 1, 1))
    torch.testing.assert_close(output[0, 0], torch.tensor([[4.0, 8, 8]] * 3))


def test_both_forms_agree_in_float32_on_a_larger_map() -> None:
    case = Case(batch=2, inputs=8, outputs=6, size=(23, 31), dilation=2, padding=2, groups=2, deform_groups=2)
    inputs = case.arguments(torch.float32, reach=4)
    torch.testing.assert_close(bags(*inputs, *case.steps), grid(*inputs, *case.steps), atol=2e-4, rtol=1e-4)


@both_forms
def test_layout_in_memory_does_not_matter(form: Form) -> None:
    case = Case(batch=2, size=(6, 7), dilation=2, padding=2, deform_groups=2)
    inputs = case.arguments()
    rearranged = [x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x for x in inputs]
    torch.testing.assert_close(form(*rearranged, *case.steps), form(*inputs, *case.steps))


@pytest.mark.usefixtures("torch_bf16")
@both_forms
@pytest.mark.parametrize("with_bias", [False, True])
def test_autocast_computes_in_bfloat16(form: Form, with_bias: bool) -> None:
    case = Case(size=(8, 9), deform_groups=2)
    inputs = case.arguments(torch.float32)[: 5 if with_bias else 4]
    bias = inputs[4] if with_bias else None
    exact = form(*inputs[:4], bias, *case.steps)
    with torch.autocast("cpu", torch.bfloat16):
        output = form(*inputs[:4], bias, *case.steps)
    assert output.dtype == torch.bfloat16
    torch.testing.assert_close(output.float(), exact, atol=0.1, rtol=0.05)


@pytest.mark.usefixtures("torch_bf16")
@both_forms
def test_half_precision_does_not_reach_the_coordinates(form: Form) -> None:
    # Stripes sampled half-way are 0.5 everywhere; bfloat16 has no half pixels beyond column 128.
    stripes = (torch.arange(600) % 2).to(torch.bfloat16).expand(1, 1, 2, 600)
    offset = torch.zeros(1, 2, 2, 600, dtype=torch.bfloat16)
    offset[:, 1] = 0.5
    ones = torch.ones(1, 1, 2, 600, dtype=torch.bfloat16)
    output = form(stripes, offset, ones, torch.ones(1, 1, 1, 1, dtype=torch.bfloat16))
    assert output.dtype == torch.bfloat16
    torch.testing.assert_close(output[..., :-1].float(), torch.full((1, 1, 2, 599), 0.5), atol=0.01, rtol=0)


class _Wrapped(nn.Module):
    def __init__(self, case: Case) -> None:
        super().__init__()
        self.case = case

    def forward(self, *inputs: Tensor) -> Tensor:
        return deform_conv2d(*inputs, *self.case.steps)


def test_export_reproduces_eager_with_exchangeable_operators() -> None:
    case = Case(size=(6, 7), dilation=2, padding=2, groups=2, deform_groups=2)
    inputs = tuple(case.arguments(torch.float32))
    program = torch.export.export(_Wrapped(case), inputs)
    torch.testing.assert_close(program.module()(*inputs), deform_conv2d(*inputs, *case.steps))
    targets = {str(node.target) for node in program.graph.nodes}
    assert not any("embedding_bag" in target for target in targets)
    assert any("grid_sampl" in target for target in targets)


def test_a_forced_form_is_used_and_given_back_even_after_an_error() -> None:
    inputs = Case().arguments()
    calls: list[Callable[..., Tensor]] = []

    def recorded(given: DeformConvArguments) -> Tensor:
        calls.append(recorded)
        return deform_conv2d_grid(given)

    with using_deform_conv(recorded):
        deform_conv2d(*inputs, padding=1)
    assert len(calls) == 1
    with pytest.raises(AanetError), using_deform_conv(recorded):
        deform_conv2d(*inputs, stride=0)
    deform_conv2d(*inputs, padding=1)
    assert len(calls) == 1


def test_meta_tensors_have_the_shape_of_real_ones() -> None:
    case = Case(batch=2, outputs=6, size=(7, 9), stride=2, dilation=2, padding=2, deform_groups=2)
    inputs = case.arguments(torch.float32)
    on_meta = deform_conv2d(*(x.to("meta") for x in inputs), *case.steps)
    real = deform_conv2d(*inputs, *case.steps)
    assert (on_meta.shape, on_meta.dtype) == (real.shape, real.dtype)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torchvision's operator is used on CUDA only")
@pytest.mark.parametrize("case", [CASES["two deformable groups"], CASES["stride 2 and dilation 2"]])
def test_torchvision_on_cuda_is_the_same_convolution(case: Case) -> None:
    if _torchvision_operator() is None:
        pytest.skip("torchvision is absent, or does not fit the installed torch")
    inputs = case.arguments(torch.float32)
    on_gpu = deform_conv2d(*(x.cuda() for x in inputs), *case.steps).cpu()
    torch.testing.assert_close(on_gpu, naive.deform_conv2d(*inputs, *case.steps), atol=1e-4, rtol=1e-4)
