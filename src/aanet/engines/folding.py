"""Folding batch norms into the preceding convolutions, which saves passes over memory."""

from __future__ import annotations

import copy

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.utils.fusion import fuse_conv_bn_weights

from aanet.models.network import StereoNetwork


def fold_batch_norms(network: StereoNetwork) -> StereoNetwork:
    """Return a copy of a network for inference, in which batch norms are folded into convolutions.

    Batch norms after deformable convolutions are kept, because those have no bias to fold them into.
    """
    folded = copy.deepcopy(network).eval()
    for chain in folded.modules():
        if isinstance(chain, nn.Sequential):
            for index in range(len(chain) - 1):
                convolution, norm = chain[index], chain[index + 1]
                if isinstance(convolution, _ConvNd) and isinstance(norm, _BatchNorm):
                    _fold(convolution, norm)
                    chain[index + 1] = nn.Identity()
    return folded


def _fold(convolution: _ConvNd, norm: _BatchNorm) -> None:
    assert norm.running_mean is not None  # batch norms track both by default
    assert norm.running_var is not None
    convolution.weight, convolution.bias = fuse_conv_bn_weights(
        convolution.weight,
        convolution.bias,
        norm.running_mean,
        norm.running_var,
        norm.eps,
        norm.weight,
        norm.bias,
        transpose=convolution.transposed,
    )
