"""Training stages: which parts of the network run, and with which losses.

`features` correlates raw features, `aggregation` adds the aggregation but not the refinement (48 % of AANet's
multiplications), `all` is the complete network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from aanet.errors import UnsupportedError
from aanet.models.aggregation import AdaptiveAggregation
from aanet.models.cost_volume import CorrelationPyramid
from aanet.models.network import StereoNetwork
from aanet.training.losses import (
    CellLoss,
    DisparityLoss,
    FinestLoss,
    MatchingLoss,
    PyramidLoss,
    Truth,
    score_loss,
)
from aanet.training.recipe import StageSpec


class StageOutput(NamedTuple):
    """The outputs of a stage: disparities coarse to fine, matching costs fine to coarse."""

    disparities: list[Tensor]  # each [B, h, w] in pixels of its own grid
    volumes: list[Tensor]  # raw, each [B, D_s, h, w]
    scores: list[Tensor]  # aggregated, each [B, D_s, h, w]


# A forward pass of a stage, from both normalized images to the outputs.
Pass = Callable[[StereoNetwork, Tensor, Tensor], StageOutput]


def match_features(network: StereoNetwork, left: Tensor, right: Tensor) -> StageOutput:
    """Run features and correlation only; the disparity is the best candidate of the finest scale."""
    volumes = network.cost_volumes(network.extract(left, right))
    return StageOutput([volumes[0].argmax(dim=1).float()], volumes, [])


def match_and_aggregate(network: StereoNetwork, left: Tensor, right: Tensor) -> StageOutput:
    """Run everything but the refinement."""
    features = network.extract(left, right)
    volumes = network.cost_volumes(features)
    scores = network.aggregate(volumes, features)
    return StageOutput(network.regress(scores, features), volumes, scores)


def predict(network: StereoNetwork, left: Tensor, right: Tensor) -> StageOutput:
    """Run the complete network, without its matching costs."""
    return StageOutput(network(left, right).disparities, [], [])


def match_and_predict(network: StereoNetwork, left: Tensor, right: Tensor) -> StageOutput:
    """Run the complete network; also returns its matching costs."""
    features = network.extract(left, right)
    volumes = network.cost_volumes(features)
    scores = network.aggregate(volumes, features)
    disparities = network.regress(scores, features)
    refined = network.refine(disparities[-1], scores[0], features, left, right)
    return StageOutput([*disparities, *refined], volumes, scores)


class StageModule(nn.Module):
    """A network with the forward pass and the losses of one stage.

    The losses are part of the module, so that distributed wrappers see all of their parameters.
    """

    def __init__(
        self,
        network: StereoNetwork,
        run: Pass,
        disparity_loss: DisparityLoss | None,
        matching_loss: MatchingLoss | None,
        score_weight: float = 0.0,
    ) -> None:
        super().__init__()
        self.network = network
        self.run = run
        self.disparity_loss = disparity_loss
        self.matching_loss = matching_loss
        self.matching_weight = 1.0
        self.score_weight = score_weight

    def forward(
        self, left: Tensor, right: Tensor, disparity: Tensor, visible: Tensor, pseudo: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the loss and the finest predicted disparity."""
        output = self.run(self.network, left, right)
        truth = Truth(disparity, visible, pseudo)
        with torch.autocast(left.device.type, enabled=False):
            loss = disparity.new_zeros(())
            if self.disparity_loss is not None:
                loss = loss + self.disparity_loss(output.disparities, truth)
            if self.matching_loss is not None and self.matching_weight:
                loss = loss + self.matching_weight * self.matching_loss(output.volumes, truth)
            elif self.matching_loss is not None:  # distributed training needs a gradient of every parameter
                loss = loss + 0 * self.matching_loss.log_temperature.sum()
            if self.score_weight:
                loss = loss + self.score_weight * score_loss(output.scores, truth)
        return loss, output.disparities[-1].detach().float()


def check_stage(stage: StageSpec, network: StereoNetwork, matching_loss: MatchingLoss | None) -> None:
    """Raise an error if the network cannot be trained as the stage demands."""
    if matching_loss is None and (stage.trains != "all" or stage.matching_weight or stage.score_weight):
        raise UnsupportedError(
            f"stage {stage.name!r} has a loss on correlation volumes, but the network's cost volume is a "
            f"{type(network.cost_volume).__name__}; only networks with adaptive aggregation support it."
        )
    network.sizes.check(*stage.crop, f"The crop of stage {stage.name!r}")


def make_stage(stage: StageSpec, network: StereoNetwork, matching_loss: MatchingLoss | None) -> StageModule:
    """Make the module that a stage trains; parameters of unused parts are frozen."""
    check_stage(stage, network, matching_loss)
    disparity_loss: DisparityLoss | None = PyramidLoss(network.max_disparity)
    if stage.loss == "finest":
        disparity_loss = FinestLoss(network.max_disparity)
    elif stage.loss == "cells":
        disparity_loss = CellLoss(network.max_disparity)
    run: Pass = predict
    trained: list[nn.Module] = [network]
    if stage.trains == "features":
        run, disparity_loss, trained = match_features, None, [network.features]
    elif stage.trains == "aggregation":
        run, trained = match_and_aggregate, [network.features, network.aggregation]
    elif stage.matching_weight or stage.score_weight:
        run = match_and_predict
    network.requires_grad_(False)
    for part in trained:
        part.requires_grad_(True)
    if stage.keep_pretrained:
        for layer in network.features.slow_to_train():
            layer.requires_grad_(False)
    uses_matching = stage.trains == "features" or stage.matching_weight > 0
    matching_loss = matching_loss if uses_matching else None
    return StageModule(network, run, disparity_loss, matching_loss, stage.score_weight)


def matching_weight(stage: StageSpec, share: float) -> float:
    """Return the weight of the matching loss after a `share` of the stage."""
    if stage.trains == "features":
        return 1.0
    return stage.matching_weight if share < stage.matching_until else 0.0


def matching_loss_of(network: StereoNetwork) -> MatchingLoss | None:
    """Return the matching loss for a network with a correlation cost volume; None for other networks."""
    if isinstance(network.cost_volume, CorrelationPyramid):
        return MatchingLoss(scales=len(network.cost_volume.candidates))
    return None


@torch.no_grad()
def fold_temperature(network: StereoNetwork, matching_loss: MatchingLoss) -> None:
    """Multiply the learned temperature into the scores of an aggregation that is initialized as the identity.

    The features were trained under a softmax with this temperature; without it, the soft argmin of their raw
    correlation is close to the middle candidate everywhere.
    """
    assert isinstance(network.aggregation, AdaptiveAggregation)
    for conv, log_temperature in zip(network.aggregation.scores, matching_loss.log_temperature, strict=False):
        conv.get_parameter("weight").mul_(log_temperature.exp())


def freeze_batch_norm(module: nn.Module) -> None:
    """Freeze the statistics of every batch norm; scale and shift are still trained."""
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            part.eval()
