"""Adaptive aggregation, and the 3D networks it is compared with."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aanet.models.aggregation import (
    AdaptiveAggregation,
    AdaptiveAggregationModule,
    CrossScaleAggregation,
    GANetAggregation,
    GCNetAggregation,
    IntraScaleAggregation,
    PSMNetAggregation,
    StereoNetAggregation,
)
from aanet.models.ganet import GuidanceNetwork
from aanet.models.layers import DeformConv2d
from aanet.ops.guided import semi_global_aggregation
from helpers.small_networks import randomize_weights


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def test_intra_scale_aggregation_keeps_one_channel_per_candidate_everywhere() -> None:
    for block in (IntraScaleAggregation.sparse(8), IntraScaleAggregation.regular(8)):
        convolutions = [
            m for m in block.modules() if isinstance(m, nn.Conv2d | DeformConv2d) and m.weight.shape[0] != 54
        ]
        assert [c.weight.shape[:2] for c in convolutions] == [(8, 8)] * 3
        assert isinstance(block.shortcut, nn.Identity)
        assert (block(random(1, 8, 5, 6)) >= 0).all()


def test_regular_windows_have_dilation_1_and_adaptive_ones_2() -> None:
    regular, sparse = IntraScaleAggregation.regular(8).window[0], IntraScaleAggregation.sparse(8).window[0]
    assert isinstance(regular, nn.Conv2d)
    assert regular.dilation == (1, 1)
    assert isinstance(sparse, DeformConv2d)


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_cross_scale_aggregation_may_have_fewer_outputs_than_inputs(outputs: int) -> None:
    volumes = [random(1, 8, 8, 12), random(1, 4, 4, 6), random(1, 2, 2, 3)]
    kept = [volume.clone() for volume in volumes]
    results = CrossScaleAggregation([8, 4, 2], outputs).eval()(volumes)
    assert [x.shape for x in results] == [x.shape for x in volumes[:outputs]]
    assert all(torch.equal(now, before) for now, before in zip(volumes, kept, strict=True))


def test_every_scale_reaches_every_other() -> None:
    module = CrossScaleAggregation([8, 4, 2], 3).eval()
    volumes = [random(1, 8, 8, 12), random(1, 4, 4, 6), random(1, 2, 2, 3)]
    for source, volume in enumerate(volumes):
        volume.requires_grad_()
        for target in range(3):
            (gradient,) = torch.autograd.grad(module(volumes)[target].sum(), volume)
            assert gradient.any(), f"scale {source} does not reach scale {target}"


def test_a_stack_is_its_modules_in_turn_and_one_1x1_convolution_per_scale() -> None:
    def module() -> AdaptiveAggregationModule:
        return AdaptiveAggregationModule(
            [IntraScaleAggregation.sparse(4), IntraScaleAggregation.regular(2)],
            CrossScaleAggregation([4, 2], 2),
        )

    stack = AdaptiveAggregation([module(), module()], [4, 2]).eval()
    randomize_weights(stack)
    volumes = [random(1, 4, 6, 8), random(1, 2, 3, 4)]
    expected = volumes
    for part in stack.stack:
        within = [isa(x) for isa, x in zip(part.intra_scale, expected, strict=True)]
        expected = part.cross_scale(within)
    for ours, conv, volume in zip(stack(volumes), stack.scores, expected, strict=True):
        assert conv.bias is not None
        torch.testing.assert_close(ours, F.conv2d(volume, conv.weight, conv.bias))


def test_stereonet_and_gcnet_return_minus_their_cost() -> None:
    for aggregation, volume in (
        (StereoNetAggregation().eval(), random(1, 32, 3, 4, 5)),
        (GCNetAggregation().eval(), random(1, 64, 16, 16, 16)),
    ):
        costs: list[Tensor] = []
        aggregation.cost.register_forward_hook(lambda *given, costs=costs: costs.append(given[2]))
        (scores,) = aggregation([volume])
        torch.testing.assert_close(scores, -costs[0][:, 0])


def test_gcnet_doubles_the_size_of_its_volume() -> None:
    with torch.device("meta"):
        (scores,) = GCNetAggregation().eval()([torch.empty(1, 64, 16, 32, 48)])
    assert scores.shape == (1, 32, 64, 96)


def test_psmnet_adds_up_the_scores_of_its_hourglasses() -> None:
    aggregation = PSMNetAggregation(outputs=3).eval()
    randomize_weights(aggregation)
    parts: list[Tensor] = []
    for score in aggregation.score:
        score.register_forward_hook(lambda *given: parts.append(given[2]))
    with torch.inference_mode():
        last, middle, first = aggregation([random(1, 64, 4, 4, 8)])
    assert last.shape == (1, 16, 16, 32)
    for scores, count in ((first, 1), (middle, 2), (last, 3)):
        total = torch.stack(parts[:count]).sum(dim=0)
        expected = F.interpolate(total, (16, 16, 32), mode="trilinear", align_corners=False)[:, 0]
        torch.testing.assert_close(scores, expected, atol=1e-5, rtol=1e-5)


def test_the_last_scores_of_psmnet_do_not_depend_on_how_many_are_asked_for() -> None:
    three, one = PSMNetAggregation(outputs=3).eval(), PSMNetAggregation(outputs=1).eval()
    one.load_state_dict(three.state_dict())
    volume = random(1, 64, 4, 4, 4)
    with torch.inference_mode():
        torch.testing.assert_close(one([volume])[0], three([volume])[0])


def test_psmnets_hourglasses_see_the_first_way_down_and_the_latest_way_up() -> None:
    aggregation = PSMNetAggregation(outputs=1).eval()
    calls: list[tuple[tuple[Tensor, ...], tuple[Tensor, Tensor, Tensor]]] = []
    for hourglass in aggregation.hourglasses:
        hourglass.register_forward_hook(lambda *given: calls.append((given[1], given[2])))
    with torch.inference_mode():
        aggregation([random(1, 64, 4, 4, 4)])
    (first, (_, down, up)), (second, (_, _, later_up)), (third, _) = calls
    assert len(first) == 1
    assert second[1] is down
    assert second[2] is up
    assert third[1] is down
    assert third[2] is later_up


def test_an_hourglass_adds_what_an_earlier_one_knew() -> None:
    hourglass = PSMNetAggregation(outputs=1).eval().hourglasses[0]
    randomize_weights(hourglass)
    x, before, behind = random(1, 32, 4, 4, 4), random(1, 64, 2, 2, 2), random(1, 64, 2, 2, 2) + 1
    with torch.inference_mode():
        output, down, up = hourglass(x, before, behind)
        torch.testing.assert_close(down, F.relu(hourglass.to_half(x) + behind))
        torch.testing.assert_close(up, F.relu(hourglass.up_to_half(hourglass.to_quarter(down)) + before))
        torch.testing.assert_close(output, hourglass.up_to_full(up))
        _, down, up = hourglass(x)
        torch.testing.assert_close(up, F.relu(hourglass.up_to_half(hourglass.to_quarter(down)) + down))


def test_ganet_guides_every_sga_block_with_weights_of_unit_norm() -> None:
    guidance = GuidanceNetwork(3).eval()
    randomize_weights(guidance)
    result = guidance(random(1, 3, 12, 18), random(1, 32, 4, 6))
    assert [tuple(w.shape) for w in result.semi_global] == [(1, 4, 32, 5, 4, 6)] * 3
    assert [tuple(w.shape) for w in result.local] == [(1, 75, 12, 18)] * 2
    for weights in result.semi_global:
        norm = weights.abs().sum(dim=3)
        torch.testing.assert_close(norm, torch.ones_like(norm))
    for weights in result.local:
        norm = weights.abs().sum(dim=1)
        torch.testing.assert_close(norm, torch.ones_like(norm))


def test_a_semi_global_block_is_sga_a_convolution_and_a_shortcut() -> None:
    block = GANetAggregation(outputs=1).eval().semi_global[0]
    randomize_weights(block)
    volume = random(1, 32, 2, 3, 4)
    weights = F.normalize(random(1, 4, 32, 5, 3, 4), p=1, dim=3)
    expected = F.relu(block.refine(block.norm(semi_global_aggregation(volume, weights))) + volume)
    torch.testing.assert_close(block(volume, weights), expected)


def test_ganet_puts_the_last_block_first() -> None:
    three, one = GANetAggregation(outputs=3).eval(), GANetAggregation(outputs=1).eval()
    missing = one.load_state_dict(three.state_dict(), strict=False)
    assert not missing.missing_keys
    volume = random(1, 64, 4, 4, 8)
    weights = [F.normalize(random(1, 4, 32, 5, 4, 8), p=1, dim=3)] * 3
    with torch.inference_mode():
        torch.testing.assert_close(one([volume], weights)[0], three([volume], weights)[0])


def test_every_block_of_ganet_gets_its_own_weights() -> None:
    aggregation = GANetAggregation(outputs=1).eval()
    given: list[Tensor] = []
    for block in aggregation.semi_global:
        block.register_forward_pre_hook(lambda _, inputs: given.append(inputs[1]))
    weights = [F.normalize(random(1, 4, 32, 5, 4, 4) + i, p=1, dim=3) for i in range(3)]
    with torch.inference_mode():
        aggregation([random(1, 64, 4, 4, 4)], weights)
    assert all(ours is expected for ours, expected in zip(given, weights, strict=True))
