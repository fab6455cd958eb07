"""Optimizers with a smaller learning rate for the offset predictors of deformable convolutions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from aanet.training.muon import Muon
from aanet.training.recipe import OptimizerSpec

OFFSET = "offset"  # in the name of every parameter that predicts offsets and masks
BACKBONE = ".backbone."  # in the name of every parameter of a pretrained backbone


def make_optimizer(
    spec: OptimizerSpec,
    named_parameters: Iterable[tuple[str, nn.Parameter]],
    bf16: bool = False,
) -> torch.optim.Optimizer:
    """Make an optimizer; `factor` of each parameter group multiplies the stage's learning rate.

    `bf16` is for Muon's matrix products; weights stay in float32.
    """
    trained = [(name, parameter) for name, parameter in named_parameters if parameter.requires_grad]
    temperatures = [p for name, p in trained if name.endswith("log_temperature")]
    offsets = [p for name, p in trained if OFFSET in name]
    backbone = [p for name, p in trained if BACKBONE in name]
    chosen = {id(p) for p in (*temperatures, *offsets, *backbone)}
    others = [p for _, p in trained if id(p) not in chosen]
    groups: list[dict[str, Any]] = [
        {"params": others, "factor": 1.0},
        {"params": backbone, "factor": spec.backbone_factor},
        {"params": offsets, "factor": spec.offset_factor, "orthogonal": False},
        # A temperature is a learned scale, which weight decay would bias.
        {"params": temperatures, "factor": 1.0, "weight_decay": 0.0, "orthogonal": False},
    ]
    if spec.name == "muon":
        groups = [part for group in groups for part in split_matrices(group)]
    for group in groups:
        group.setdefault("weight_decay", spec.weight_decay)
        group.setdefault("orthogonal", False)
    groups = [group for group in groups if group["params"]]
    if spec.name == "muon":
        return Muon(groups, betas=spec.betas, bf16=bf16)
    kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    optimizer: torch.optim.Optimizer = kinds[spec.name](groups, betas=spec.betas)
    return optimizer


def split_matrices(group: dict[str, Any]) -> list[dict[str, Any]]:
    """Split a group into parameters updated by AdamW and by orthogonal updates, unless it specifies which."""
    if "orthogonal" in group:
        return [group]
    matrices = [p for p in group["params"] if is_matrix(p)]
    others = [p for p in group["params"] if not is_matrix(p)]
    return [
        group | {"params": others, "orthogonal": False},
        group | {"params": matrices, "orthogonal": True},
    ]


def is_matrix(parameter: nn.Parameter) -> bool:
    """Whether a parameter is a kernel with several outputs; a single one needs no orthogonalization."""
    return parameter.dim() > 1 and parameter.shape[0] > 1


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """Set the learning rate of each group."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * group["factor"]
