"""The stacks of AAModules of AANet and of the paper's ablations."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from aanet.models.aggregation.adaptive import (
    AdaptiveAggregation,
    AdaptiveAggregationModule,
    CrossScaleAggregation,
    IntraScaleAggregation,
)

REGULAR_MODULES = 3  # AAModules with an ordinary 3×3 window
SPARSE_MODULES = 3  # AAModules with adaptive sampling points

Intra = Callable[[int], IntraScaleAggregation]


def with_isa_and_csa(candidates: list[int], training_heads: bool) -> AdaptiveAggregation:
    """AANet's stack: adaptive sampling in the last three modules, and cross-scale aggregation."""
    return _cross_scale_stack(candidates, training_heads, IntraScaleAggregation.sparse)


def without_isa(candidates: list[int], training_heads: bool) -> AdaptiveAggregation:
    """Regular windows in all modules, and cross-scale aggregation."""
    return _cross_scale_stack(candidates, training_heads, IntraScaleAggregation.regular)


def without_csa(candidates: list[int], training_heads: bool) -> AdaptiveAggregation:
    """Adaptive sampling in the last three modules, without cross-scale aggregation."""
    return _separate_stack(candidates, training_heads, IntraScaleAggregation.sparse)


def without_isa_and_csa(candidates: list[int], training_heads: bool) -> AdaptiveAggregation:
    """Regular windows in all modules, without cross-scale aggregation."""
    return _separate_stack(candidates, training_heads, IntraScaleAggregation.regular)


def _cross_scale_stack(candidates: list[int], training_heads: bool, late: Intra) -> AdaptiveAggregation:
    """Six AAModules; the coarser outputs of the last module exist only for training."""
    outputs = len(candidates) if training_heads else 1
    intra = [IntraScaleAggregation.regular] * REGULAR_MODULES + [late] * SPARSE_MODULES
    stack = []
    for index, build_intra in enumerate(intra):
        is_last = index == len(intra) - 1
        cross = CrossScaleAggregation(candidates, outputs if is_last else len(candidates))
        stack.append(AdaptiveAggregationModule([build_intra(count) for count in candidates], cross))
    return AdaptiveAggregation(stack, candidates[:outputs])


def _separate_stack(candidates: list[int], training_heads: bool, late: Intra) -> AdaptiveAggregation:
    """Six AAModules without cross-scale aggregation; the coarser scales exist only for training."""
    used = candidates if training_heads else candidates[:1]
    intra = [IntraScaleAggregation.regular] * REGULAR_MODULES + [late] * SPARSE_MODULES
    stack = [AdaptiveAggregationModule([build(count) for count in used], nn.Identity()) for build in intra]
    return AdaptiveAggregation(stack, used)
