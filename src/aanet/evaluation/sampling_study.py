"""Measures what the paper says about its figure of sampling points.

At object boundaries, "the sampling points tend to focus on similar disparity regions"; in textureless
regions, they are "more discretely distributed to sample from a large context".  Both are measured over whole
images with dense ground truth, beside the regular window from which every layer starts, and beside that
window widened to the distance of the adaptive points, which tells adaptation from a mere choice of size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from aanet.data.sample import StereoSample
from aanet.errors import InputError
from aanet.evaluation.regions import EDGE_JUMP, near_edges, textureless
from aanet.evaluation.sampling_points import Field, Fields, record_fields
from aanet.models.network import StereoNetwork
from aanet.typing import Mask

REGIONS = ("edges", "textureless", "textured")
KINDS = ("adaptive", "regular", "widened")


@dataclass
class Spread:
    """Sums over the grid pixels of one region.

    Attributes:
        pixels: Number of grid pixels, over all layers and images.
        on_surface: Sum of the share of a pixel's points, by weight, that lie on its surface.
        distance: Sum of the root mean square distance, by weight, of its points in pixels.
    """

    pixels: int = 0
    on_surface: float = 0.0
    distance: float = 0.0

    def add(self, on_surface: NDArray[np.float64], distance: NDArray[np.float64]) -> None:
        """Count the given grid pixels."""
        self.pixels += on_surface.size
        self.on_surface += float(on_surface.sum())
        self.distance += float(distance.sum())

    def means(self) -> dict[str, float | None]:
        """Return the share on the surface in percent, and the distance; None without pixels."""
        if not self.pixels:
            return {"on_surface": None, "distance": None}
        return {"on_surface": 100 * self.on_surface / self.pixels, "distance": self.distance / self.pixels}


@dataclass
class SamplingStudy:
    """The spread of the points of each kind by region.

    Attributes:
        spreads: By kind: "adaptive", "regular" (the window without offsets), and "widened": that window, in
            every pixel as wide as the adaptive points are far.
    """

    spreads: dict[str, dict[str, Spread]] = field(
        default_factory=lambda: {kind: {region: Spread() for region in REGIONS} for kind in KINDS}
    )

    def add(self, fields: Fields, sample: StereoSample) -> None:
        """Measure the points of all layers on one pair with dense ground truth."""
        regions = _regions(sample)
        nominal = _distance(fields.regular, fields)
        for layer in fields.layers:
            widened = _scaled(fields.regular, _distance(layer, fields) / nominal)
            for kind, points in (("adaptive", layer), ("regular", fields.regular), ("widened", widened)):
                _add(self.spreads[kind], points, fields, sample, regions)

    def as_dict(self) -> dict[str, dict[str, dict[str, float | None]]]:
        """Return plain values by kind of points and region."""
        return {
            kind: {name: spread.means() for name, spread in spreads.items()}
            for kind, spreads in self.spreads.items()
        }


def study_sampling(network: StereoNetwork, samples: Iterable[StereoSample]) -> SamplingStudy:
    """Measure the sampling points of a network with adaptive aggregation on pairs with dense ground truth."""
    study = SamplingStudy()
    for sample in samples:
        if sample.disparity is None or sample.valid is None:
            raise InputError(f"{sample.name} has no ground truth, which defines the surfaces.")
        study.add(record_fields(network, sample.left, sample.right), sample)
    return study


def _regions(sample: StereoSample) -> dict[str, Mask]:
    """Disjoint regions of the image in which the points are compared."""
    assert sample.disparity is not None
    assert sample.valid is not None
    edges = near_edges(sample.disparity, sample.valid)
    plain = textureless(sample.left)
    return {"edges": edges, "textureless": plain & ~edges, "textured": ~plain & ~edges}


def _grid(layer: Field) -> NDArray[np.float32]:
    """The pixels of the grid itself, [h, w, 2]."""
    _, rows, columns = layer.x.shape
    return np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), axis=-1).astype(np.float32)


def _distance(layer: Field, fields: Fields) -> NDArray[np.float64]:
    """Root mean square distance of all points from their pixel, by weight, in pixels of the image, [h, w]."""
    squared = ((np.stack((layer.x, layer.y), axis=-1) - _grid(layer)) ** 2).sum(axis=-1)
    distance: NDArray[np.float64] = fields.step * np.sqrt(np.average(squared, axis=0, weights=layer.weight))
    return distance


def _scaled(layer: Field, factor: NDArray[np.float64]) -> Field:
    """The same points, `factor` times as far from their pixel."""
    column, row = np.moveaxis(_grid(layer), -1, 0)
    x = column + factor * (layer.x - column)
    y = row + factor * (layer.y - row)
    return Field(x.astype(np.float32), y.astype(np.float32), layer.weight)


def _add(
    spreads: dict[str, Spread],
    layer: Field,
    fields: Fields,
    sample: StereoSample,
    regions: dict[str, Mask],
) -> None:
    """Measure one layer: each pixel of its grid is compared with its points at full resolution."""
    assert sample.disparity is not None
    assert sample.valid is not None
    center = fields.to_image(_grid(layer))  # [h, w, 2]
    points = fields.to_image(np.stack((layer.x, layer.y), axis=-1))  # [P, h, w, 2]
    own, known = _ground_truth(sample, center)
    theirs, readable = _ground_truth(sample, points)
    weight = np.where(readable, layer.weight, 0).astype(np.float64)  # points beyond the image are not read
    total = weight.sum(axis=0)
    near = np.abs(theirs - own) <= EDGE_JUMP
    squared = ((points - center) ** 2).sum(axis=-1)
    total_or_one = np.where(total > 0, total, 1)
    on_surface = (weight * near).sum(axis=0) / total_or_one
    distance = np.sqrt((weight * squared).sum(axis=0) / total_or_one)
    measured = known & (total > 0)
    column, row, _ = _nearest(sample, center)
    for name, region in regions.items():
        chosen = measured & region[row, column]
        spreads[name].add(on_surface[chosen], distance[chosen])


def _nearest(
    sample: StereoSample, points: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Mask]:
    """Columns and rows of the nearest pixels of the image, and which points are inside of it."""
    height, width = sample.left.shape[:2]
    column, row = (np.rint(points[..., axis]).astype(np.int64) for axis in (0, 1))
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    return np.clip(column, 0, width - 1), np.clip(row, 0, height - 1), inside


def _ground_truth(sample: StereoSample, points: NDArray[np.float32]) -> tuple[NDArray[np.float32], Mask]:
    """The true disparity at points [..., 2] of the image, and where it is known."""
    assert sample.disparity is not None
    assert sample.valid is not None
    column, row, inside = _nearest(sample, points)
    return sample.disparity[row, column], inside & sample.valid[row, column]
