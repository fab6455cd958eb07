"""What must hold for each of the networks."""

from __future__ import annotations

import copy
import hashlib
import pickle
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from aanet.errors import AanetError, InputError
from aanet.models import zoo
from aanet.models.aggregation import AdaptiveAggregation, GuidedAggregation
from aanet.models.aggregation.ganet3d import SemiGlobalBlock
from aanet.models.cost_volume import CorrelationPyramid
from aanet.models.network import StereoNetwork, StereoOutput
from aanet.models.weights.checkpoint import Checkpoint
from helpers.small_networks import MAX_DISPARITY, build_small, random_pair, shrink_pooling, thin_out

# By how much each prediction is smaller than the image, coarse to fine, without and with training heads.
SCALES: dict[str, tuple[list[int], list[int]]] = {
    "aanet": ([3, 2, 1], [12, 6, 3, 2, 1]),
    "aanet_plus": ([3, 2, 1], [12, 6, 3, 2, 1]),
    "stereonet_aa": ([4, 2, 1], [4, 2, 1]),
    "aanet_fast": ([4, 4, 1], [4, 4, 1]),
    "gcnet_aa": ([2, 1], [8, 4, 2, 1]),
    "psmnet_aa": ([4, 2, 1], [16, 8, 4, 2, 1]),
    "ganet_aa": ([3, 2, 1], [12, 6, 3, 2, 1]),
    "stereonet": ([8, 4, 2, 1], [8, 4, 2, 1]),
    "gcnet": ([1], [1]),
    "psmnet": ([1], [1, 1, 1]),
    "ganet": ([1], [1, 1, 1]),
    "aanet_no_isa": ([3, 2, 1], [12, 6, 3, 2, 1]),
    "aanet_no_csa": ([3, 2, 1], [12, 6, 3, 2, 1]),
    "aanet_no_isa_csa": ([3, 2, 1], [12, 6, 3, 2, 1]),
}
SIZE_MULTIPLES = {"aanet": 12, "aanet_plus": 96, "stereonet_aa": 4, "aanet_fast": 32, "gcnet_aa": 8}
SIZE_MULTIPLES |= {"psmnet_aa": 16, "ganet_aa": 48, "stereonet": 8, "gcnet": 32, "psmnet": 16, "ganet": 48}


@dataclass
class Subject:
    """A network in evaluation, a batch of two pairs, and what comes out."""

    name: str
    network: StereoNetwork
    left: Tensor
    right: Tensor
    output: StereoOutput


@pytest.fixture(scope="module", params=zoo.NETWORKS)
def subject(request: pytest.FixtureRequest) -> Subject:
    network = build_small(request.param, randomize=True)
    left, right = random_pair(network, batch=2)
    with torch.inference_mode():
        output = network(left, right)
    return Subject(request.param, network, left, right, output)


def sizes(maps: list[Tensor]) -> list[tuple[int, ...]]:
    return [tuple(x.shape) for x in maps]


def assert_same_scores(ours: Tensor, expected: Tensor) -> None:
    """Equal but for rounding, which grows with the largest score."""
    torch.testing.assert_close(ours, expected, atol=1e-5 * expected.abs().max().item(), rtol=1e-4)


def test_predictions_go_from_coarse_to_fine_and_end_at_the_images_size(subject: Subject) -> None:
    height, width = subject.left.shape[2:]
    expected = [(2, height // scale, width // scale) for scale in SCALES[subject.name][0]]
    assert sizes(subject.output.disparities) == expected
    assert subject.output.disparity is subject.output.disparities[-1]


def test_disparities_are_finite_not_negative_and_depend_on_both_images(subject: Subject) -> None:
    for disparity in subject.output.disparities:
        assert torch.isfinite(disparity).all()
        assert (disparity >= 0).all() or subject.name == "ganet"  # LGA has negative weights
    with torch.inference_mode():
        for changed in (
            subject.network(subject.left, subject.left),
            subject.network(subject.right, subject.right),
        ):
            assert not torch.equal(changed.scores, subject.output.scores)


def test_scores_have_a_candidate_per_pixel_of_their_scale(subject: Subject) -> None:
    scale = SCALES[subject.name][0][0]
    candidates = MAX_DISPARITY.get(subject.name, 48) // scale
    if subject.name == "ganet":
        candidates += 1  # 0 … D
    height, width = subject.left.shape[2:]
    assert tuple(subject.output.scores.shape) == (2, candidates, height // scale, width // scale)


def test_a_pair_does_not_know_what_else_is_in_the_batch(subject: Subject) -> None:
    with torch.inference_mode():
        for index in range(2):
            alone = subject.network(subject.left[index : index + 1], subject.right[index : index + 1])
            for ours, both in zip(alone.disparities, subject.output.disparities, strict=True):
                torch.testing.assert_close(ours, both[index : index + 1], atol=1e-2, rtol=1e-3)
            assert_same_scores(alone.scores, subject.output.scores[index : index + 1])


def test_evaluation_is_deterministic_and_leaves_its_inputs_alone(subject: Subject) -> None:
    left, right = subject.left.clone(), subject.right.clone()
    with torch.inference_mode():
        again = subject.network(left, right)
    for first, second in zip(subject.output.disparities, again.disparities, strict=True):
        assert torch.equal(first, second)
    assert torch.equal(left, subject.left)
    assert torch.equal(right, subject.right)


def test_kernels_are_channels_last_and_the_usual_layout_gives_the_same(subject: Subject) -> None:
    kernels = [p for p in subject.network.parameters() if p.dim() == 4]
    assert all(kernel.is_contiguous(memory_format=torch.channels_last) for kernel in kernels)
    usual = copy.deepcopy(subject.network).to(memory_format=torch.contiguous_format)
    assert any(
        not p.is_contiguous(memory_format=torch.channels_last) for p in usual.parameters() if p.dim() == 4
    )
    rearranged = subject.left.contiguous(memory_format=torch.channels_last)
    with torch.inference_mode():
        expected = usual(subject.left[:1], subject.right[:1])
        ours = subject.network(rearranged[:1], subject.right[:1])
    torch.testing.assert_close(ours.disparity, expected.disparity, atol=1e-2, rtol=1e-3)
    assert_same_scores(ours.scores, expected.scores)


def test_copies_are_the_same_network(subject: Subject) -> None:
    thawed = pickle.loads(pickle.dumps(subject.network))
    assert thawed.architecture == subject.network.architecture
    assert thawed.sizes == subject.network.sizes
    with torch.inference_mode():
        copied = copy.deepcopy(thawed)(subject.left, subject.right)
    assert torch.equal(copied.disparity, subject.output.disparity)


@pytest.mark.slow
@pytest.mark.usefixtures("torch_bf16")
@pytest.mark.parametrize("name", ["aanet", "aanet_plus", "stereonet_aa", "stereonet"])
def test_half_precision_by_autocast_keeps_disparities_in_float32(name: str) -> None:
    network = build_small(name)
    images = random_pair(network, extra=0)
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        output = network(*images)
    assert {disparity.dtype for disparity in output.disparities} == {torch.float32}
    assert torch.isfinite(output.disparity).all()


def test_ganet_is_guided_by_the_left_image() -> None:
    with torch.device("meta"):
        network = zoo.card("ganet").build(24, False).eval()
        given: list[Tensor] = []
        network.get_submodule("guidance").register_forward_pre_hook(lambda _, inputs: given.append(inputs[0]))
        left, right = torch.empty(1, 3, 48, 48), torch.empty(1, 3, 48, 48)
        network(left, right)
    assert given[0] is left


@pytest.mark.parametrize("name", SIZE_MULTIPLES)
def test_size_multiples(name: str) -> None:
    with torch.device("meta"):
        network = zoo.card(name).build(192, False)
    assert network.sizes.multiple == SIZE_MULTIPLES[name]
    minimum = {"psmnet": 256, "psmnet_aa": 256, "aanet_fast": 64}.get(name, network.sizes.multiple)
    assert network.sizes.minimum == minimum


@pytest.mark.slow
@pytest.mark.parametrize("name", zoo.NETWORKS)
def test_training_heads_learn_and_can_be_dropped(name: str) -> None:
    network = build_small(name, training_heads=True, randomize=True)
    left, right = random_pair(network, batch=2, extra=0)
    network.train()
    output = network(left, right)
    height, width = left.shape[2:]
    assert sizes(output.disparities) == [(2, height // s, width // s) for s in SCALES[name][1]]

    # Far from zero no ReLU of the refinement is silent; a weighting, because batch norms cancel plain sums.
    weighted = [d * torch.linspace(0.5, 1.5, d.numel()).view_as(d).sin() for d in output.disparities]
    torch.stack([w.mean() for w in weighted]).sum().backward()
    without = [key for key, p in network.named_parameters() if p.grad is None or not p.grad.any()]
    assert not [key for key in without if not _is_cancelled(key)]
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in network.parameters())

    network.eval()
    predictor = Checkpoint(network.architecture, network.state_dict()).network(training_heads=False)
    shrink_pooling(predictor)
    with torch.inference_mode():
        expected, ours = network(left, right), predictor(left, right)
    assert sizes(ours.disparities) == [(2, height // s, width // s) for s in SCALES[name][0]]
    torch.testing.assert_close(ours.disparity, expected.disparity, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(ours.scores, expected.scores, atol=1e-4, rtol=1e-5)


def _is_cancelled(key: str) -> bool:
    """A bias that a batch norm takes away again has a gradient of zero."""
    return "pyramid.smooth" in key and key.endswith(".0.bias")


@pytest.mark.parametrize(
    ("name", "multiple"),
    [
        ("aanet", 24),
        ("aanet_plus", 24),
        ("gcnet_aa", 16),
        ("psmnet_aa", 32),
        ("stereonet_aa", 8),
        ("stereonet", 8),
        ("gcnet", 32),
        ("psmnet", 16),
        ("ganet", 12),
    ],
)
def test_any_multiple_is_a_maximum_disparity_and_others_name_the_nearest(name: str, multiple: int) -> None:
    with torch.device("meta"):
        network = zoo.card(name).build(multiple, False).eval()
        images = torch.empty(1, 3, network.sizes.minimum, network.sizes.minimum)
        scores = network(images, images).scores
    assert network.max_disparity == multiple
    assert scores.shape[1] == (multiple + 1 if name == "ganet" else multiple // SCALES[name][0][0])
    with pytest.raises(
        AanetError,
        match=rf"multiple of {multiple}, .*{5 * multiple + 3}.*: {5 * multiple} or {6 * multiple}\.$",
    ):
        zoo.build(name, 5 * multiple + 3)
    with pytest.raises(InputError, match=rf"got 1; the nearest allowed: {multiple}\.$"):
        zoo.build(name, 1)
    for hopeless in (0, -multiple):
        with pytest.raises(
            AanetError, match=rf"positive multiple of {multiple}.*nearest allowed: {multiple}\.$"
        ):
            zoo.build(name, hopeless)


class _Disparity(nn.Module):
    def __init__(self, network: StereoNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return self.network(left, right).disparity


# Hourglasses and guided layers make long graphs; their operators are exported in the tests of `aanet.ops`.
@pytest.mark.slow
@pytest.mark.parametrize("name", ["aanet", "stereonet_aa", "stereonet", "gcnet", "psmnet"])
def test_export_reproduces_eager(name: str) -> None:
    network = build_small(name, randomize=True)
    thin_out(network)
    left, right = random_pair(network, extra=0)
    program = torch.export.export(_Disparity(network), (left, right))
    with torch.inference_mode():
        torch.testing.assert_close(
            program.module()(left, right), network(left, right).disparity, atol=1e-3, rtol=1e-4
        )


# A change here makes every stored weight file useless; keys are sorted, because their order does not matter.
LAYOUTS = {
    "aanet": "7d1578fd7001",
    "aanet_plus": "e8eb6c17ae6d",
    "stereonet_aa": "d355cf4cd995",
    "aanet_fast": "c9b02be14129",
    "gcnet_aa": "5a1d914702fc",
    "psmnet_aa": "039fe6ed118d",
    "ganet_aa": "246dd1234243",
    "stereonet": "ed7370b66736",
    "gcnet": "82412d1bfdcf",
    "psmnet": "c1e8a48d4a29",
    "ganet": "cf78b4255212",
    "aanet_no_isa": "0b78cbc01b95",
    "aanet_no_csa": "c0954c3b4b34",
    "aanet_no_isa_csa": "ba1a576e980c",
}


@pytest.mark.parametrize("name", zoo.NETWORKS)
def test_names_and_shapes_of_the_weights_never_change(name: str) -> None:
    with torch.device("meta"):
        state = zoo.card(name).build(192, True).state_dict()
    lines = "\n".join(f"{key} {list(state[key].shape)}" for key in sorted(state))
    assert hashlib.sha256(lines.encode()).hexdigest()[:12] == LAYOUTS[name]


@pytest.mark.parametrize("name", zoo.NETWORKS)
def test_every_network_has_its_figures(name: str) -> None:
    card = zoo.card(name)
    with torch.device("meta"):
        network = card.build(192, False)
    assert card.title
    assert card.summary
    assert card.correlates == isinstance(network.cost_volume, CorrelationPyramid)
    assert card.fixed_range == isinstance(network.aggregation, AdaptiveAggregation | GuidedAggregation)
    assert card.dynamic_shapes != any(isinstance(part, SemiGlobalBlock) for part in network.modules())
    if card.replaces is not None:
        replaced = zoo.card(card.replaces)
        assert not replaced.fixed_range
        assert card.bytes_per_pixel <= replaced.bytes_per_pixel


@pytest.mark.parametrize("name", zoo.NETWORKS)
def test_the_memory_figure_lies_between_the_largest_layer_and_all_layers(name: str) -> None:
    card = zoo.card(name)
    with torch.device("meta"):
        network = card.build(192, False).eval()
    height, width = 288, 384
    at_once, written = [], []  # bytes that layers need while they run, and of their outputs

    def record(_: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        written.append(output.nbytes)
        at_once.append(output.nbytes + sum(each.nbytes for each in inputs))

    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Conv3d | nn.BatchNorm2d | nn.BatchNorm3d):
            layer.register_forward_hook(record)
    image = torch.empty(1, 3, height, width, device="meta")
    network(image, image)
    assert max(at_once) < card.bytes_per_pixel * height * width < sum(written)
