"""GC-Net's aggregation: an encoder and decoder of nineteen 3D convolutions (Kendall et al., ICCV 2017)."""

from __future__ import annotations

from torch import Tensor, nn

from aanet.models.layers import conv3d_norm, relu, upconv3d_norm

ENCODER_WIDTHS = (64, 64, 64, 128)  # at 1/2, 1/4, 1/8 and 1/16 of the volume
DECODER_WIDTHS = (64, 64, 64, 32)


def _two_convs(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(conv3d_norm(inputs, outputs, relu()), conv3d_norm(outputs, outputs, relu()))


class GCNetAggregation(nn.Module):
    """[B, 64, D/2, H/2, W/2] → scores [B, D, H, W]."""

    size_multiple = 2 ** len(ENCODER_WIDTHS)

    def __init__(self) -> None:
        super().__init__()
        inputs = (64, *ENCODER_WIDTHS)
        self.down = nn.ModuleList(
            conv3d_norm(wide, narrow, relu(), stride=2)
            for wide, narrow in zip(inputs[:-1], ENCODER_WIDTHS, strict=True)
        )
        # The skip connections to the decoder, fine to coarse.
        self.level = nn.ModuleList([_two_convs(64, 32), *(_two_convs(w, w) for w in ENCODER_WIDTHS)])
        up_inputs = (ENCODER_WIDTHS[-1], *DECODER_WIDTHS)
        self.up = nn.ModuleList(
            upconv3d_norm(narrow, wide) for narrow, wide in zip(up_inputs[:-1], DECODER_WIDTHS, strict=True)
        )
        self.after = relu()
        self.cost = nn.ConvTranspose3d(
            DECODER_WIDTHS[-1], 1, kernel_size=3, stride=2, padding=1, output_padding=1, bias=False
        )

    def forward(self, volumes: list[Tensor]) -> list[Tensor]:
        (x,) = volumes
        kept = [self.level[0](x)]
        for down, level in zip(self.down, list(self.level)[1:], strict=True):
            x = down(x)
            kept.append(level(x))
        x = kept.pop()
        for up in self.up:
            x = self.after(up(x) + kept.pop())
        return [-self.cost(x).squeeze(1)]  # a low cost is a high score
