"""Stages run and train the parts they name, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from aanet.errors import AanetError, UnsupportedError
from aanet.models import zoo
from aanet.models.network import StereoNetwork
from aanet.models.weights import checkpoint
from aanet.training import stages
from aanet.training.environment import prepare_network
from aanet.training.losses import MatchingLoss
from aanet.training.optimizer import make_optimizer, set_learning_rate
from aanet.training.recipe import (
    DataSpec,
    OptimizerSpec,
    Recipe,
    Regression,
    StageSpec,
    TrainedNetworkSpec,
)
from aanet.training.transfer import start_from, without_training_heads

SIZE = (48, 96)


def stage(**changes: object) -> StageSpec:
    values: dict[str, object] = {"crop": SIZE, "batch": 1, "learning_rate": 0.001, "steps": 1} | changes
    return StageSpec(**values)  # type: ignore[arg-type]  # a test's shorthand


@pytest.fixture(scope="module")
def aanet() -> StereoNetwork:
    torch.manual_seed(0)
    return zoo.build("aanet", max_disparity=24, training_heads=True, initialization="matching")


def batch(seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    left, right = torch.randn(2, 1, 3, *SIZE, generator=generator)
    disparity = torch.rand(1, *SIZE, generator=generator) * 20
    return [left, right, disparity, torch.ones(1, *SIZE, dtype=torch.bool), torch.zeros(1, *SIZE)]


@pytest.mark.parametrize(
    ("trains", "parts"),
    [
        ("features", {"features"}),
        ("aggregation", {"features", "aggregation"}),
        ("all", {"features", "aggregation", "refinement"}),
    ],
)
def test_a_stage_gives_gradients_to_its_parts_only(
    aanet: StereoNetwork, trains: str, parts: set[str]
) -> None:
    module = stages.make_stage(stage(trains=trains), aanet, stages.matching_loss_of(aanet))
    loss, disparity = module(*batch())
    loss.backward()
    touched = {
        name
        for name, part in aanet.named_children()
        for p in part.parameters()
        if p.grad is not None and p.grad.any()
    }
    aanet.zero_grad(set_to_none=True)
    assert touched == parts
    assert disparity.shape[0] == 1
    assert not disparity.requires_grad


def test_every_trained_parameter_has_a_gradient_when_the_matching_loss_has_ended(
    aanet: StereoNetwork,
) -> None:
    """Several processes would wait for it for ever, or have to search for the missing ones at each step."""
    spec = stage(matching_weight=0.5, matching_until=0.5, score_weight=1.0)
    module = stages.make_stage(spec, aanet, stages.matching_loss_of(aanet))
    module.matching_weight = stages.matching_weight(spec, 0.7)
    module(*batch())[0].backward()
    idle = [name for name, p in module.named_parameters() if p.requires_grad and p.grad is None]
    module.zero_grad(set_to_none=True)
    assert not idle


def test_predictions_with_raw_correlation_are_the_networks_own(aanet: StereoNetwork) -> None:
    left, right = batch()[:2]
    aanet.eval()
    with torch.no_grad():
        expected = aanet(left, right).disparities
        output = stages.match_and_predict(aanet, left, right)
    aanet.train()
    assert len(expected) == len(output.disparities) == 5
    assert all(torch.equal(a, b) for a, b in zip(expected, output.disparities, strict=True))
    assert [volume.shape[1] for volume in output.volumes] == [8, 4, 2]


def test_the_matching_loss_is_added_with_its_weight(aanet: StereoNetwork) -> None:
    matching = stages.matching_loss_of(aanet)
    assert matching is not None
    module = stages.make_stage(stage(matching_weight=0.5), aanet, matching).eval()
    with torch.no_grad():
        losses = []
        for weight in (0.0, 0.5, 1.0):
            module.matching_weight = weight
            losses.append(float(module(*batch())[0]))
    aanet.train()
    assert losses[1] - losses[0] == pytest.approx((losses[2] - losses[0]) / 2, rel=1e-3)
    assert losses[2] > losses[0]


@pytest.mark.parametrize("trains", ["aggregation", "all"])
def test_the_score_loss_is_added_with_its_weight(aanet: StereoNetwork, trains: str) -> None:
    losses = []
    for weight in (0.0, 0.5, 1.0):
        module = stages.make_stage(stage(trains=trains, score_weight=weight), aanet, MatchingLoss(3)).eval()
        with torch.no_grad():
            losses.append(float(module(*batch())[0]))
    aanet.train()
    assert losses[1] - losses[0] == pytest.approx((losses[2] - losses[0]) / 2, rel=1e-3)
    assert losses[2] > losses[0]


def test_the_matching_weight_ends_when_the_recipe_says() -> None:
    spec = stage(matching_weight=0.5, matching_until=0.6)
    assert [stages.matching_weight(spec, share) for share in (0, 0.59, 0.6, 1)] == [0.5, 0.5, 0, 0]
    assert stages.matching_weight(stage(trains="features"), 1.0) == 1


def test_the_temperature_makes_the_first_scores_as_sharp_as_the_features() -> None:
    network = zoo.build("aanet", max_disparity=24, training_heads=True, initialization="matching").eval()
    left, right = batch()[:2]
    matching = MatchingLoss(scales=3, temperature=7.0)
    with torch.no_grad():
        before = network.aggregation(network.cost_volumes(network.extract(left, right)))
        stages.fold_temperature(network, matching)
        after = network.aggregation(network.cost_volumes(network.extract(left, right)))
    assert all(torch.allclose(7 * a, b, atol=1e-5) for a, b in zip(before, after, strict=True))


def test_networks_without_correlation_cannot_train_on_it() -> None:
    network = zoo.build("stereonet", max_disparity=24)
    assert stages.matching_loss_of(network) is None
    with pytest.raises(UnsupportedError, match="cost volume is a DifferenceVolume"):
        stages.make_stage(stage(trains="features"), network, None)


def test_a_crop_that_does_not_fit_is_named(aanet: StereoNetwork) -> None:
    with pytest.raises(AanetError, match=r"crop of stage .* multiples of 12 and at least 12, but got 50×96"):
        stages.make_stage(stage(crop=(50, 96)), aanet, stages.matching_loss_of(aanet))


def test_offset_predictors_get_a_tenth_of_the_learning_rate(aanet: StereoNetwork) -> None:
    aanet.requires_grad_(True)
    optimizer = make_optimizer(OptimizerSpec(), aanet.named_parameters())
    set_learning_rate(optimizer, 1e-3)
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    slow = [name for name, p in aanet.named_parameters() if rates[id(p)] == pytest.approx(1e-4)]
    assert len(slow) == 2 * 15  # weight and bias of the predictors of AANet's 9 + 6 deformable convolutions
    assert all("offset" in name for name in slow)
    assert len(rates) == len(list(aanet.parameters()))
    assert {group["weight_decay"] for group in optimizer.param_groups} == {1e-4}


def test_a_pretrained_backbone_learns_slower_and_its_slow_layers_not_at_all() -> None:
    network = zoo.build("aanet_fast", max_disparity=48, training_heads=True)
    spec = stage(crop=(64, 96), loss="cells", keep_pretrained=True, matching_weight=1.0, score_weight=1.0)
    module = stages.make_stage(spec, network, stages.matching_loss_of(network))
    left, right = torch.randn(2, 1, 3, 64, 96, generator=torch.Generator().manual_seed(0))
    loss, _ = module(
        left, right, torch.full((1, 64, 96), 9.0), torch.ones(1, 64, 96).bool(), torch.zeros(1, 64, 96)
    )
    loss.backward()
    slow = {id(p) for layer in network.features.slow_to_train() for p in layer.parameters()}
    assert len(slow) > 30
    assert all((p.grad is None) == (id(p) in slow) for p in module.parameters())
    optimizer = make_optimizer(OptimizerSpec(name="muon", backbone_factor=0.3), module.named_parameters())
    set_learning_rate(optimizer, 1.0)
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    for name, parameter in module.named_parameters():
        if parameter.requires_grad and "offset" not in name:
            assert rates[id(parameter)] == (0.3 if "backbone" in name else 1.0)


def test_a_temperature_is_not_decayed(aanet: StereoNetwork) -> None:
    module = stages.make_stage(stage(trains="features"), aanet, stages.matching_loss_of(aanet))
    optimizer = make_optimizer(OptimizerSpec(name="adamw"), module.named_parameters())
    assert module.matching_loss is not None
    (group,) = [
        g
        for g in optimizer.param_groups
        if any(p is module.matching_loss.log_temperature for p in g["params"])
    ]
    assert group["weight_decay"] == 0
    assert isinstance(optimizer, torch.optim.AdamW)


def test_frozen_batch_norm_keeps_its_statistics_and_trains_its_scale() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).train()
    stages.freeze_batch_norm(network)
    mean = network[1].running_mean.clone()
    network(torch.randn(2, 3, 8, 8)).sum().backward()
    assert torch.equal(network[1].running_mean, mean)
    assert network[1].weight.grad is not None


@pytest.mark.parametrize("name", sorted(zoo.NETWORKS))
def test_every_network_keeps_its_weights_without_its_training_heads(name: str) -> None:
    network = zoo.build(name, max_disparity=96, training_heads=True)
    plain = without_training_heads(network, network.state_dict())
    assert not plain.architecture.training_heads
    other = zoo.build(name, max_disparity=96, training_heads=True)
    start_from(other, plain)
    kept = plain.state_dict()
    assert all(torch.equal(value, kept[key]) for key, value in other.state_dict().items() if key in kept)


def test_weights_of_another_network_are_refused(aanet: StereoNetwork) -> None:
    with pytest.raises(UnsupportedError, match="those of stereonet_aa, but the recipe trains aanet"):
        start_from(aanet, zoo.build("stereonet_aa", max_disparity=24))


@pytest.mark.parametrize(("asked", "got"), [(None, "peak"), ("soft_argmin", "soft_argmin"), ("peak", "peak")])
def test_training_goes_on_with_the_regression_of_the_weights_unless_told(
    asked: Regression | None, got: str, tmp_path: Path
) -> None:
    file = tmp_path / "peak.safetensors"
    checkpoint.save(zoo.build("stereonet_aa", max_disparity=32, regression="peak"), file)
    spec = TrainedNetworkSpec("stereonet_aa", 32, regression=asked, start_from=str(file))
    recipe = Recipe(network=spec, data=(DataSpec("synthetic"),), stage=(stage(),))
    network, _ = prepare_network(recipe)
    assert network.architecture.regression == got
