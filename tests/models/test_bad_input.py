"""Bad input: a ValueError of one sentence with what was expected and what was given."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from aanet.errors import AanetError, InputError
from aanet.models import zoo
from aanet.models.network import StereoNetwork, normalize
from aanet.ops import (
    concatenation_volume,
    correlation_volume,
    deform_conv2d,
    difference_volume,
    resize_disparity,
    warp_by_disparity,
)
from aanet.ops.guided import local_guided_aggregation, semi_global_aggregation

zeros = torch.zeros


def assert_says(part: str, function: Callable[..., object], *given: object, **named: object) -> None:
    with pytest.raises(AanetError) as caught:
        function(*given, **named)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def network() -> StereoNetwork:
    return zoo.build("aanet", 24).eval()


def image(*shape: int, value: float = 0.0) -> Tensor:
    return torch.full(shape, value)


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        (
            image(1, 3, 12, 24),
            image(1, 3, 24, 24),
            "same shape, but are [1, 3, 12, 24] and [1, 3, 24, 24].",
        ),
        (
            image(2, 3, 12, 24),
            image(1, 3, 12, 24),
            "same shape, but are [2, 3, 12, 24] and [1, 3, 12, 24].",
        ),
        (image(3, 12, 24), image(3, 12, 24), "Images must be [B, 3, H, W], but have shape [3, 12, 24]."),
        (
            image(1, 12, 24, 3),
            image(1, 12, 24, 3),
            "Images must be [B, 3, H, W], but have shape [1, 12, 24, 3].",
        ),
        (
            image(1, 1, 12, 24),
            image(1, 1, 12, 24),
            "Images must be [B, 3, H, W], but have shape [1, 1, 12, 24].",
        ),
        (
            image(1, 3, 12, 24).to(torch.uint8),
            image(1, 3, 12, 24).to(torch.uint8),
            "The left image must be a normalized floating-point tensor, but is torch.uint8.",
        ),
        (
            image(1, 3, 12, 24),
            image(1, 3, 12, 24).long(),
            "The right image must be a normalized floating-point tensor, but is torch.int64.",
        ),
        (
            image(1, 3, 12, 24, value=float("nan")),
            image(1, 3, 12, 24),
            "The left image contains values that are not finite numbers.",
        ),
        (
            image(1, 3, 12, 24),
            image(1, 3, 12, 24, value=float("inf")),
            "The right image contains values that are not finite numbers.",
        ),
        (
            image(1, 3, 12, 25),
            image(1, 3, 12, 25),
            "aanet needs a height and width that are multiples of 12 and at least 12, but got 12×25.",
        ),
        (
            image(1, 3, 375, 1242),
            image(1, 3, 375, 1242),
            "aanet needs a height and width that are multiples of 12 and at least 12, but got 375×1242.",
        ),
        (
            image(1, 3, 0, 24),
            image(1, 3, 0, 24),
            "aanet needs a height and width that are multiples of 12 and at least 12, but got 0×24.",
        ),
    ],
)
def test_images_that_do_not_fit_a_network(
    network: StereoNetwork, left: Tensor, right: Tensor, message: str
) -> None:
    assert_says(message, network, left, right)


def test_one_nan_among_many_numbers_is_found(network: StereoNetwork) -> None:
    right = image(1, 3, 12, 24)
    right[0, 2, 11, 23] = float("nan")
    assert_says(
        "The right image contains values that are not finite numbers.", network, image(1, 3, 12, 24), right
    )


def test_images_too_small_for_psmnet() -> None:
    with torch.device("meta"):
        network = zoo.card("psmnet").build(192, False)
        assert_says(
            "psmnet needs a height and width that are multiples of 16 and at least 256, but got 128×512.",
            network,
            zeros(1, 3, 128, 512),
            zeros(1, 3, 128, 512),
        )


def test_images_that_cannot_be_normalized() -> None:
    start = "Images to normalize must be floating-point [B, 3, H, W] with values in 0 … 1, but are "
    assert_says(start + "torch.uint8 [1, 3, 2, 2].", normalize, zeros(1, 3, 2, 2, dtype=torch.uint8))
    assert_says(start + "torch.float32 [1, 2, 2, 3].", normalize, zeros(1, 2, 2, 3))


def test_normalizing_is_by_channel() -> None:
    white = normalize(torch.ones(1, 3, 1, 1)).flatten().tolist()
    assert white == pytest.approx([(1 - 0.485) / 0.229, (1 - 0.456) / 0.224, (1 - 0.406) / 0.225])


def test_unknown_networks() -> None:
    with pytest.raises(
        AanetError, match=r"^There is no network 'anet'; the networks are: aanet, aanet_plus, "
    ):
        zoo.build("anet")


@pytest.mark.parametrize("volume", [correlation_volume, difference_volume, concatenation_volume])
def test_features_that_cannot_be_compared(volume: Callable[..., Tensor]) -> None:
    features = zeros(1, 2, 3, 4)
    start = "[B, C, H, W] of the same shape, but are "
    assert_says(start + "[1, 2, 3, 4] and [1, 2, 3, 5].", volume, features, zeros(1, 2, 3, 5), 2)
    assert_says(start + "[2, 3, 4] and [2, 3, 4].", volume, features[0], features[0], 2)
    assert_says(
        "Features must be floating-point tensors, but are torch.float32 and torch.int64.",
        volume,
        features,
        features.long(),
        2,
    )
    assert_says(
        "at least 1 disparity candidate, but got 0.",
        volume,
        features,
        features,
        0,
    )


def test_bad_tensors_are_input_errors() -> None:
    features = zeros(1, 2, 3, 4)
    with pytest.raises(InputError):
        correlation_volume(features, features, 0)
    with pytest.raises(InputError):
        warp_by_disparity(features, -torch.ones(1, 3, 4))
    with pytest.raises(InputError):
        normalize(features)


def test_warps_that_make_no_sense() -> None:
    right, disparity = zeros(1, 3, 4, 5), zeros(1, 4, 5)
    start = "image [B, C, H, W] and a disparity [B, H, W] of the same size, but got "
    assert_says(start + "[1, 3, 4, 5] and [1, 4, 6].", warp_by_disparity, right, zeros(1, 4, 6))
    assert_says(start + "[1, 3, 4, 5] and [1, 1, 4, 5].", warp_by_disparity, right, zeros(1, 1, 4, 5))
    assert_says(
        "Warping needs floating-point tensors, but got torch.float32 and torch.int64.",
        warp_by_disparity,
        right,
        disparity.long(),
    )
    disparity[0, 2, 3] = -1.25
    assert_says(
        "Disparities must not be negative, but the smallest is -1.25 pixels.",
        warp_by_disparity,
        right,
        disparity,
    )


def test_disparities_that_cannot_be_resized() -> None:
    assert_says(
        "A disparity map must be [B, H, W], but has shape [1, 1, 4, 5].",
        resize_disparity,
        zeros(1, 1, 4, 5),
        (8, 10),
    )
    assert_says(
        "A disparity map must be a floating-point tensor, but is torch.int64.",
        resize_disparity,
        zeros(1, 4, 5).long(),
        (8, 10),
    )
    assert_says(
        "A disparity map cannot be resized to 0×10 pixels.", resize_disparity, zeros(1, 4, 5), (0, 10)
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x": zeros(4, 5, 6)}, "The input must have 4 dimensions, but has shape [4, 5, 6]."),
        (
            {"offset": zeros(1, 18, 5, 6).long()},
            "The offset must be a floating-point tensor, but is torch.int64.",
        ),
        ({"offset": zeros(1, 18, 5, 5)}, "The offset must have shape [1, 18, 5, 6], but has [1, 18, 5, 5]."),
        ({"offset": zeros(1, 9, 5, 6)}, "The offset must have shape [1, 18, 5, 6], but has [1, 9, 5, 6]."),
        ({"mask": zeros(1, 10, 5, 6)}, "The mask must have shape [1, 9, 5, 6], but has [1, 10, 5, 6]."),
        ({"mask": zeros(1, 8, 5, 6)}, "4 input channels cannot be split into 0 deformable groups."),
        ({"mask": zeros(1, 27, 5, 6)}, "4 input channels cannot be split into 3 deformable groups."),
        (
            {"weight": zeros(2, 3, 3, 3)},
            "A weight of shape [2, 3, 3, 3] does not fit an input of 4 channels",
        ),
        ({"bias": zeros(3)}, "The bias must have shape [2], but has [3]."),
        (
            {"stride": 0},
            "Stride and dilation must be at least 1 and padding at least 0, but are 0, 1 and 1.",
        ),
        ({"dilation": 9}, "A 3×3 kernel of dilation 9 does not fit into 5×6 pixels with padding 1."),
    ],
)
def test_deformable_convolutions_that_do_not_fit(changed: dict[str, Tensor | int], message: str) -> None:
    arguments: dict[str, Tensor | int] = {
        "x": zeros(1, 4, 5, 6),
        "offset": zeros(1, 18, 5, 6),
        "mask": zeros(1, 9, 5, 6),
        "weight": zeros(2, 4, 3, 3),
        "padding": 1,
    }
    assert_says(message, deform_conv2d, **(arguments | changed))


def test_guided_layers_with_wrong_weights() -> None:
    assert_says(
        "SGA weights must have shape [1, 4, 2, 5, 4, 6], but have [1, 4, 2, 5, 6, 4].",
        semi_global_aggregation,
        zeros(1, 2, 3, 4, 6),
        zeros(1, 4, 2, 5, 6, 4),
    )
    assert_says(
        "LGA weights must have shape [1, 75, 4, 6], but have [1, 25, 4, 6].",
        local_guided_aggregation,
        zeros(1, 3, 4, 6),
        zeros(1, 25, 4, 6),
    )


def test_images_of_another_precision_are_named() -> None:
    network = zoo.build("stereonet_aa", 32).eval()
    image = torch.zeros(1, 3, 32, 32, dtype=torch.float64)
    with pytest.raises(
        ValueError, match=r"^The left image must be torch\.float32 like the network, but is torch\.float64\.$"
    ):
        network(image, image)
