"""Stacks of AAModules: the paper's, and those of its ablations."""

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
    """The paper's: the last three modules sample adaptively, and scales talk to each other."""
    return _cross_scale_stack(candidates, training_heads, IntraScaleAggregation.sparse)


def without_isa(candidates: list[int], training_heads: bool) -> AdaptiveAggregation:
    """Every window is a regular one."""
    return _cross_scale_stack(candidates, training_heads, IntraScaleAggregation.regular)


def without_csa(candidates: list[int], training_heads: bool) -> AdaptiveAggregation:
    """Every scale is aggregated alone."""
    return _separate_stack(candidates, training_heads, IntraScaleAggregation.sparse)


def without_isa_and_csa(candidates: list[int], training_heads: bool) -> AdaptiveAggregation:
    """Regular windows, and every scale alone."""
    return _separate_stack(candidates, training_heads, IntraScaleAggregation.regular)


def _cross_scale_stack(candidates: list[int], training_heads: bool, late: Intra) -> AdaptiveAggregation:
    """Six AAModules; only training needs more than the finest output of the last one."""
    outputs = len(candidates) if training_heads else 1
    intra = [IntraScaleAggregation.regular] * REGULAR_MODULES + [late] * SPARSE_MODULES
    stack = []
    for index, build_intra in enumerate(intra):
        is_last = index == len(intra) - 1
        cross = CrossScaleAggregation(candidates, outputs if is_last else len(candidates))
        stack.append(AdaptiveAggregationModule([build_intra(count) for count in candidates], cross))
    return AdaptiveAggregation(stack, candidates[:outputs])


def _separate_stack(candidates: list[int], training_heads: bool, late: Intra) -> AdaptiveAggregation:
    """Six AAModules without cross-scale aggregation: the coarser scales exist for their heads alone."""
    used = candidates if training_heads else candidates[:1]
    intra = [IntraScaleAggregation.regular] * REGULAR_MODULES + [late] * SPARSE_MODULES
    stack = [AdaptiveAggregationModule([build(count) for count in used], nn.Identity()) for build in intra]
    return AdaptiveAggregation(stack, used)
