"""A network that matches without having been trained, for tests that need sensible disparities."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from aanet.models import zoo
from aanet.models.network import StereoNetwork, normalize


def textured_scene(height: int, width: int, seed: int = 0) -> NDArray[np.uint8]:
    """Noise at several scales, [H, W, 3]: texture everywhere, and none that repeats."""
    rng = np.random.default_rng(seed)
    image = np.zeros((height, width, 3))
    for scale in (2, 4, 16):
        coarse = rng.random((height // scale + 2, width // scale + 2, 3))
        image += np.kron(coarse, np.ones((scale, scale, 1)))[:height, :width]
    return np.asarray(image / image.max() * 255, np.uint8)


def plane(
    height: int, width: int, disparity: int, seed: int = 0
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """A pair that sees a plane of one disparity."""
    scene = textured_scene(height, width + disparity, seed)
    return scene[:, :width], scene[:, disparity:]


def matching_network(max_disparity: int) -> StereoNetwork:
    """StereoNet-AA with random features made white: their correlation is high where they agree.

    Aggregation is the identity and refinement adds nothing, so this is plain correlation matching.
    """
    torch.manual_seed(0)
    network = zoo.build("stereonet_aa", max_disparity, initialization="matching")
    scene = torch.from_numpy(textured_scene(160, 240)).permute(2, 0, 1)[None] / 255
    features = network.features
    for norm in features.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.momentum = None  # the statistics of this one scene
            norm.reset_running_stats()
    with torch.no_grad():
        features.train()(normalize(scene))
        values = features.eval()(normalize(scene))[0].permute(1, 0, 2, 3).flatten(1)  # [C, N]
        powers, axes = torch.linalg.eigh(values @ values.T / values.shape[1])
        whiten = (axes * powers.clamp(min=1e-5 * float(powers.max())).rsqrt()) @ axes.T
        kernel = features.last.weight
        kernel.copy_((whiten @ kernel.flatten(1)).view_as(kernel))
        for scores in network.aggregation.scores:
            scores.weight.mul_(30)  # a sharp softmax
    return network.eval()
