"""An initialization with which adaptive aggregation networks match from the first training step.

With the paper's initialization, dense 1×1 convolutions mix the candidates at random. The features cannot
learn to match through such a mixture, and the mixture cannot improve before the features match; with a small
training budget the error stays at that of a constant prediction. If the aggregation starts as the identity,
it passes the correlation through, and training starts from plain correlation matching.
"""

from __future__ import annotations

from torch import nn

from aanet.errors import UnsupportedError
from aanet.models.aggregation import AdaptiveAggregation, CrossScaleAggregation, IntraScaleAggregation
from aanet.models.network import StereoNetwork
from aanet.models.refinement import ColorRefinement, WarpedRefinement


def initialize_for_matching(network: StereoNetwork) -> None:
    """Initialize the adaptive aggregation as the identity and the refinement to correct by zero."""
    if not isinstance(network.aggregation, AdaptiveAggregation):
        raise UnsupportedError(
            "The matching initialization needs adaptive aggregation, which "
            f"{network.architecture.builder} does not have."
        )
    for module in network.modules():
        if isinstance(module, IntraScaleAggregation):
            _zero_last_norm(module.expand)
        elif isinstance(module, CrossScaleAggregation):
            for target, paths in enumerate(module.paths):
                assert isinstance(paths, nn.ModuleList)
                for source, path in enumerate(paths):
                    if source != target:
                        _zero_last_norm(path)
        elif isinstance(module, WarpedRefinement | ColorRefinement):
            assert module.residual.bias is not None
            nn.init.zeros_(module.residual.weight)
            nn.init.zeros_(module.residual.bias)
    for conv in network.aggregation.scores:
        assert isinstance(conv, nn.Conv2d)
        assert conv.bias is not None
        nn.init.dirac_(conv.weight)
        nn.init.zeros_(conv.bias)


def _zero_last_norm(path: nn.Module) -> None:
    """Zero the last batch norm of a path, so that it starts with an output of zero but can still learn."""
    norms = [module for module in path.modules() if isinstance(module, nn.BatchNorm2d)]
    nn.init.zeros_(norms[-1].weight)
    nn.init.zeros_(norms[-1].bias)  # already zero, unless the network has been trained
