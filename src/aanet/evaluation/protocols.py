"""Descriptions of the scoring protocols, which the datasets declare."""

from __future__ import annotations

from aanet.data.datasets import DATASETS, Folder
from aanet.data.datasets.card import Protocol
from aanet.evaluation.metrics import METRICS


def protocol_of(dataset: str) -> Protocol:
    """Return the protocol of a dataset by name; that of `folder` if it is not a known dataset."""
    return DATASETS.get(dataset, Folder).CARD.protocol


def describe(protocol: Protocol) -> list[tuple[str, str]]:
    """Return the protocol as (aspect, description), printed with every result."""
    limit = protocol.max_disparity
    averages = {
        "images": "over images: every image has the same weight",
        "pixels": "over pixels: the pixels of all images are pooled",
    }
    return [
        ("mask", "pixels with ground truth, including occluded ones; noc: visible in both views"),
        ("range", "every known disparity" if limit is None else f"0 < d < {limit:g} px"),
        ("crop", "none: whole images, at the size of the ground truth"),
        ("holes", "filled with the smaller disparity of their row neighbors and scored; density counts them"),
        ("average", averages[protocol.average]),
        ("benchmark", protocol.description),
    ]


def labels(protocol: Protocol) -> list[str]:
    """Return the headings of the table of results."""
    return [METRICS[metric].label for metric in protocol.metrics]
