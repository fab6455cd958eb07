"""Muon: momentum whose matrices are made orthogonal, for kernels; AdamW for everything else.

A kernel [Cout, Cin, k, k] is a matrix [Cout, Cin·k·k].  The momentum of such a matrix is dominated by a few
directions; here all of them are made equally large, as Jordan et al. (2024) propose.  Scaled as by Liu et al.
(2025) it is as large as a step of AdamW, so learning rates carry over.
`torch.optim.Muon` takes matrices only, no kernels, and leaves everything else to another optimiser.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

# A fifth-degree polynomial that pulls all singular values towards 1, fast rather than exactly.
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
            update = self._orthogonal_update if group["orthogonal"] else self._adam_update
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.mul_(1 - group["lr"] * group["weight_decay"])
                    parameter.sub_(group["lr"] * update(parameter, group))

    def _orthogonal_update(self, parameter: Tensor, group: dict[str, Any]) -> Tensor:
        state, gradient = self.state[parameter], parameter.grad
        assert gradient is not None
        if not state:
            state["momentum"] = torch.zeros_like(parameter)
        state["momentum"].lerp_(gradient, 1 - group["momentum"])
        ahead = gradient.lerp(state["momentum"], group["momentum"])  # Nesterov's look ahead
        matrix = ahead.flatten(1)
        scale = ADAM_STEP * max(matrix.shape) ** 0.5
        update: Tensor = scale * orthogonalise(matrix).view_as(parameter)
        return update

    def _adam_update(self, parameter: Tensor, group: dict[str, Any]) -> Tensor:
        state, gradient = self.state[parameter], parameter.grad
        assert gradient is not None
        if not state:
            state["step"] = 0
            state["mean"], state["square"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        state["step"] += 1
        first, second = group["betas"]
        state["mean"].lerp_(gradient, 1 - first)
        state["square"].lerp_(gradient.square(), 1 - second)
        mean = state["mean"] / (1 - first ** state["step"])
        deviation = (state["square"] / (1 - second ** state["step"])).sqrt()
        update: Tensor = mean / (deviation + group["eps"])
        return update


def orthogonalise(matrix: Tensor) -> Tensor:
    """The orthogonal factor U Vᵀ of a matrix U S Vᵀ, nearly: its singular values end between 0.7 and 1.2."""
    a, b, c = COEFFICIENTS
    tall = matrix.shape[0] > matrix.shape[1]
    x: Tensor = matrix.t() if tall else matrix  # the small side first, so that the products are small
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(ITERATIONS):
        square = x @ x.t()
        x = a * x + (b * square + c * square @ square) @ x
    return x.t() if tall else x
