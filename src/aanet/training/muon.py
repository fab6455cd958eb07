"""Muon: orthogonalized momentum for kernels, AdamW for everything else.

A kernel [Cout, Cin, k, k] is treated as a matrix [Cout, Cin·k·k]. Its momentum is dominated by a few
directions; orthogonalization gives all of them the same magnitude (Jordan et al., 2024). Updates are scaled
to the magnitude of AdamW's (Liu et al., 2025), so learning rates carry over. `torch.optim.Muon` accepts
matrices only, not kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim.adamw import adamw

# A fifth-degree polynomial that moves all singular values toward 1, fast rather than exactly.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
ADAM_STEP = 0.2  # typical root mean square of an AdamW update, in learning rates
MOMENTUM = 0.95
EPSILON = 1e-8


class Muon(torch.optim.Optimizer):
    """Groups with `orthogonal` = True contain kernels and get orthogonal updates; the others use AdamW."""

    def __init__(
        self,
        groups: list[dict[str, Any]],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        bf16: bool = False,
    ) -> None:
        super().__init__(groups, {"lr": lr, "betas": betas})
        self.orthogonalize = orthogonalize_in_bf16 if bf16 else orthogonalize

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]  # no closure, no loss
        """Update every parameter that has a gradient."""
        if closure is not None:
            raise TypeError("Muon does not support a closure.")
        for group in self.param_groups:
            changed = [parameter for parameter in group["params"] if parameter.grad is not None]
            if group["orthogonal"]:
                self._orthogonal_step(changed, group)
            else:
                self._adam_step(changed, group)

    def _orthogonal_step(self, kernels: list[Tensor], group: dict[str, Any]) -> None:
        by_shape: dict[tuple[int, ...], list[Tensor]] = {}
        for kernel in kernels:
            by_shape.setdefault(tuple(kernel.shape), []).append(kernel)
        for shape, parameters in by_shape.items():  # batched products are faster
            matrices = torch.stack([self._momentum(p).flatten(1) for p in parameters])
            scale = ADAM_STEP * max(matrices.shape[1:]) ** 0.5
            for parameter, update in zip(parameters, self.orthogonalize(matrices), strict=True):
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.sub_(update.view(shape), alpha=group["lr"] * scale)

    def _momentum(self, kernel: Tensor) -> Tensor:
        """Update and return the Nesterov momentum."""
        state, gradient = self.state[kernel], kernel.grad
        assert gradient is not None
        if not state:
            state["momentum"] = torch.zeros_like(kernel)
        state["momentum"].lerp_(gradient, 1 - MOMENTUM)
        return gradient.lerp(state["momentum"], MOMENTUM)

    def _adam_step(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter].update(
                    step=torch.zeros(()), mean=torch.zeros_like(parameter), square=torch.zeros_like(parameter)
                )
        states = [self.state[parameter] for parameter in parameters]
        adamw(
            parameters,
            [parameter.grad for parameter in parameters if parameter.grad is not None],
            [state["mean"] for state in states],
            [state["square"] for state in states],
            [],
            [state["step"] for state in states],
            foreach=True,
            amsgrad=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=EPSILON,
            maximize=False,
        )


def orthogonalize(matrices: Tensor) -> Tensor:
    """Approximate the orthogonal factors U Vᵀ of matrices U S Vᵀ: singular values end between 0.7 and 1.2.

    Each iteration multiplies X by a polynomial of X Xᵀ. All these factors are functions of the initial X Xᵀ,
    which is small, so they are multiplied with one another first and with X only once.
    """
    a, b, c = COEFFICIENTS
    tall = matrices.shape[-2] > matrices.shape[-1]
    x: Tensor = matrices.mT if tall else matrices
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    square = x @ x.mT
    one = torch.eye(x.shape[-2], dtype=x.dtype, device=x.device).expand_as(square)
    product = one
    for _ in range(ITERATIONS):
        factor = a * one + b * square + c * square @ square
        product = factor @ product
        square = factor @ square @ factor
    x = product @ x
    return x.mT if tall else x


def orthogonalize_in_bf16(matrices: Tensor) -> Tensor:
    """`orthogonalize` in half the time on a processor with bf16 instructions.

    X is multiplied in every iteration: rounded to bf16, a product of the small matrices alone would lose the
    directions of small singular values.
    """
    a, b, c = COEFFICIENTS
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = (x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)).bfloat16()
    for _ in range(ITERATIONS):
        square = x @ x.mT
        factor = torch.baddbmm(square, square, square, beta=b, alpha=c)
        x = torch.baddbmm(x, factor, x, beta=a)
    x = x.to(matrices.dtype)
    return x.mT if tall else x
