"""Muon: momentum whose matrices are made orthogonal, for kernels; AdamW for everything else.

A kernel [Cout, Cin, k, k] is a matrix [Cout, Cin·k·k].  The momentum of such a matrix is dominated by a few
directions; here all of them are made equally large, as Jordan et al. (2024) propose.  Scaled as by Liu et al.
(2025) it is as large as a step of AdamW, so learning rates carry over.
`torch.optim.Muon` takes matrices only, no kernels, and leaves everything else to another optimizer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim.adamw import adamw

# A fifth-degree polynomial that pulls all singular values toward 1, fast rather than exactly.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
ADAM_STEP = 0.2  # usual root mean square of an update of AdamW, in learning rates


class Muon(torch.optim.Optimizer):
    """Groups with `orthogonal` = True hold kernels and take orthogonal steps; the others those of AdamW."""

    def __init__(
        self,
        groups: list[dict[str, Any]],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        momentum: float = 0.95,
        eps: float = 1e-8,
    ) -> None:
        super().__init__(groups, {"lr": lr, "betas": betas, "momentum": momentum, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]  # no closure, no loss
        """Change every parameter that has a gradient."""
        if closure is not None:
            raise TypeError("Muon takes one gradient per step and no closure.")
        for group in self.param_groups:
            changed = [parameter for parameter in group["params"] if parameter.grad is not None]
            if group["orthogonal"]:
                self._orthogonal_step(changed, group)
            else:
                self._adam_step(changed, group)

    def _orthogonal_step(self, kernels: list[Tensor], group: dict[str, Any]) -> None:
        alike: dict[tuple[int, ...], list[Tensor]] = {}
        for kernel in kernels:
            alike.setdefault(tuple(kernel.shape), []).append(kernel)
        for shape, parameters in alike.items():  # many small products at once are faster than one by one
            matrices = torch.stack([self._momentum(p, group["momentum"]).flatten(1) for p in parameters])
            scale = ADAM_STEP * max(matrices.shape[1:]) ** 0.5
            for parameter, update in zip(parameters, orthogonalize(matrices), strict=True):
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.sub_(update.view(shape), alpha=group["lr"] * scale)

    def _momentum(self, kernel: Tensor, decay: float) -> Tensor:
        """Nesterov's: the momentum after this gradient, and a step ahead."""
        state, gradient = self.state[kernel], kernel.grad
        assert gradient is not None
        if not state:
            state["momentum"] = torch.zeros_like(kernel)
        state["momentum"].lerp_(gradient, 1 - decay)
        return gradient.lerp(state["momentum"], decay)

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
            eps=group["eps"],
            maximize=False,
        )


def orthogonalize(matrices: Tensor) -> Tensor:
    """The orthogonal factors U Vᵀ of matrices U S Vᵀ, nearly: singular values end between 0.7 and 1.2.

    Each iteration multiplies X by a polynomial of X Xᵀ.  All of them are functions of the first X Xᵀ, whose
    side is the small one, so they are multiplied with one another and X only once, at the end.
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
