"""The orthogonal optimizer: its matrices, its AdamW part, what it is given, and that it resumes."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from aanet.training.muon import Muon, orthogonalize, orthogonalize_in_bf16
from aanet.training.optimizer import make_optimizer, set_learning_rate
from aanet.training.recipe import OptimizerSpec


@pytest.mark.parametrize("shape", [(16, 144), (64, 9), (32, 32)])
def test_directions_are_kept_and_become_equally_large(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    matrix = torch.randn(shape) @ torch.diag(torch.logspace(0, -1.5, shape[1]))
    u, before, v = torch.linalg.svd(matrix, full_matrices=False)
    after = u.t() @ orthogonalize(matrix) @ v.t()
    assert before.max() / before.min() > 3
    assert after.diagonal().min() > 0.5
    assert after.diagonal().max() < 1.3
    assert (after - torch.diag(after.diagonal())).abs().max() < 1e-3


@pytest.mark.parametrize("shape", [(16, 144), (64, 9), (32, 32)])
def test_in_bf16_the_result_is_nearly_the_same(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    matrices = torch.randn(3, *shape) @ torch.diag(torch.logspace(0, -1.5, shape[1]))
    rounded, exact = orthogonalize_in_bf16(matrices), orthogonalize(matrices)
    assert rounded.dtype == torch.float32
    assert float((rounded - exact).norm() / exact.norm()) < 0.05
    assert orthogonalize_in_bf16(torch.zeros(2, 4, 9)).abs().max() == 0


def test_bf16_is_for_kernels_only() -> None:
    kernel, bias = nn.Parameter(torch.zeros(8, 4, 3, 3)), nn.Parameter(torch.zeros(8))
    optimizer = make_optimizer(OptimizerSpec(name="muon"), [("kernel", kernel), ("bias", bias)], bf16=True)
    set_learning_rate(optimizer, 0.01)
    kernel.grad, bias.grad = torch.ones_like(kernel), torch.ones_like(bias)
    optimizer.step()
    assert kernel.dtype == bias.dtype == torch.float32
    torch.testing.assert_close(bias.detach(), torch.full((8,), -0.01))
    assert float(kernel.detach().abs().min()) > 0


def test_a_zero_gradient_changes_nothing() -> None:
    assert orthogonalize(torch.zeros(4, 9)).abs().max() == 0


def test_an_orthogonal_step_is_as_large_as_one_of_adamw() -> None:
    torch.manual_seed(0)
    kernel = nn.Parameter(torch.zeros(64, 32, 3, 3))
    kernel.grad = torch.randn_like(kernel)
    Muon([{"params": [kernel], "weight_decay": 0.0, "orthogonal": True}], lr=0.01).step()
    assert 0.1 < float(kernel.detach().square().mean().sqrt()) / 0.01 < 0.3
    assert float((kernel.detach() * kernel.grad).sum()) < 0  # downhill


def test_everything_else_takes_the_steps_of_adamw() -> None:
    torch.manual_seed(0)
    ours, theirs = nn.Parameter(torch.randn(7)), nn.Parameter(torch.zeros(7))
    theirs.data.copy_(ours.data)
    muon = Muon([{"params": [ours], "weight_decay": 0.1, "orthogonal": False}], lr=0.02)
    adamw = torch.optim.AdamW([theirs], lr=0.02, weight_decay=0.1)
    for _ in range(5):
        ours.grad = torch.randn(7)
        theirs.grad = ours.grad.clone()
        muon.step()
        adamw.step()
    torch.testing.assert_close(ours, theirs)


class Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3)
        self.offset_conv = nn.Conv2d(4, 8, 3)
        self.last = nn.Conv2d(8, 1, 3)
        self.log_temperature = nn.Parameter(torch.zeros(3))


def test_only_kernels_with_several_outputs_are_orthogonal() -> None:
    parts = Parts()
    optimizer = make_optimizer(OptimizerSpec(name="muon", offset_factor=0.1), parts.named_parameters())
    set_learning_rate(optimizer, 0.5)
    orthogonal = [p for g in optimizer.param_groups if g["orthogonal"] for p in g["params"]]
    assert [id(p) for p in orthogonal] == [id(parts.conv.weight)]
    everything = [p for g in optimizer.param_groups for p in g["params"]]
    assert len(everything) == len({id(p) for p in everything}) == len(list(parts.parameters()))
    (offsets,) = (g for g in optimizer.param_groups if g["params"][0] is parts.offset_conv.weight)
    assert offsets["lr"] == pytest.approx(0.05)


def test_a_restored_state_goes_on_exactly() -> None:
    torch.manual_seed(0)
    first, gradients = Parts(), [torch.randn(8, 4, 3, 3) for _ in range(4)]
    second = copy.deepcopy(first)

    def train(parts: Parts, optimizer: torch.optim.Optimizer, gradients: list[torch.Tensor]) -> None:
        for gradient in gradients:
            parts.conv.weight.grad = gradient.clone()
            optimizer.step()

    spec = OptimizerSpec(name="muon")
    optimizer = make_optimizer(spec, first.named_parameters())
    train(first, optimizer, gradients)
    halfway = make_optimizer(spec, second.named_parameters())
    train(second, halfway, gradients[:2])
    resumed = make_optimizer(spec, second.named_parameters())
    resumed.load_state_dict(copy.deepcopy(halfway.state_dict()))
    train(second, resumed, gradients[2:])
    assert torch.equal(first.conv.weight, second.conv.weight)
