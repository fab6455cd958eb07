"""Starting an adaptive aggregation network so that it matches from the first step.

With the paper's initialization the dense 1×1 convolutions over the candidates scramble their order until the
features match, and the features cannot learn to match while the order is scrambled: on a small budget the
network stays at the error of a constant guess. Started as the identity, aggregation passes the correlation
through, and learning starts from plain correlation matching.
"""

from __future__ import annotations

from torch import nn

from aanet.errors import AanetError
from aanet.models.aggregation import AdaptiveAggregation, CrossScaleAggregation, IntraScaleAggregation
from aanet.models.network import StereoNetwork
from aanet.models.refinement import ColorRefinement, WarpedRefinement


def initialize_for_matching(network: StereoNetwork) -> None:
    """Make the adaptive aggregation of a network the identity and its refinement the zero correction."""
    if not isinstance(network.aggregation, AdaptiveAggregation):
        raise AanetError(
            f"The matching initialization is for adaptive aggregation, which "
            f"{network.architecture.builder} does not have."
        )
    for module in network.modules():
        if isinstance(module, IntraScaleAggregation):
            _silence(module.expand)
        elif isinstance(module, CrossScaleAggregation):
            for target, paths in enumerate(module.paths):
                assert isinstance(paths, nn.ModuleList)
                for source, path in enumerate(paths):
                    if source != target:
                        _silence(path)
        elif isinstance(module, WarpedRefinement | ColorRefinement):
            assert module.residual.bias is not None
            nn.init.zeros_(module.residual.weight)
            nn.init.zeros_(module.residual.bias)
    for conv in network.aggregation.scores:
        assert isinstance(conv, nn.Conv2d)
        assert conv.bias is not None
        nn.init.dirac_(conv.weight)
        nn.init.zeros_(conv.bias)


def _silence(path: nn.Module) -> None:
    """Zero the last batch norm of a path, so that the path starts as nothing and yet learns."""
    norms = [module for module in path.modules() if isinstance(module, nn.BatchNorm2d)]
    nn.init.zeros_(norms[-1].weight)
    nn.init.zeros_(norms[-1].bias)  # already so, unless the network has been trained
