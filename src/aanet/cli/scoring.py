"""Scores of the models and of the maps of `aanet evaluate`, on one dataset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aanet.cli.console import progress_bar, track
from aanet.cli.matching import Models

if TYPE_CHECKING:
    from aanet.data.datasets import StereoDataset
    from aanet.evaluation import Evaluation
    from aanet.evaluation.report import ErrorMaps


@dataclass(frozen=True)
class Scoring:
    """What is scored, and where.

    Attributes:
        models: The models.
        folders: Maps that other programs wrote, by the name of their row.
        strict: Refuse folders that are incomplete.
        ray: The address of a cluster that matches the pairs; None for this process.
        workers: Number of its workers.
    """

    models: Models
    folders: Mapping[str, Path]
    strict: bool = False
    ray: str | None = None
    workers: int | None = None

    @property
    def names(self) -> list[str]:
        """The names of all rows."""
        return [*self.models.sources, *self.folders]

    def __call__(
        self,
        pairs: StereoDataset,
        options: Mapping[str, Any],
        indices: list[int],
        maps: dict[str, ErrorMaps],
    ) -> list[Evaluation]:
        """Score some pairs of a dataset that was opened with these options, and draw error maps."""
        # Folders are looked through before anything is matched, which takes longer.
        evaluations = _score_folders(self.folders, pairs, indices, self.strict, maps)
        if self.ray is None:
            scored = _score_models(self.models, pairs, indices, maps)
        else:
            scored = _score_models_on_ray(
                self.models, pairs, dict(options), indices, maps, self.ray, self.workers
            )
        return [*scored, *evaluations]


def _score_models(
    models: Models, pairs: StereoDataset, indices: list[int], maps: dict[str, ErrorMaps]
) -> Iterator[Evaluation]:
    from aanet.evaluation import evaluate as score

    for name, source in models.sources.items():
        matcher, origin = models.open(name)
        yield score(
            partial(matcher, options=models.matching),
            pairs,
            model=name,
            network=matcher.spec.name,
            source=source,
            origin=origin,
            indices=track(indices, f"{name}, {pairs.name}", len(indices)),
            observe=maps.get(name),
        )


def _score_models_on_ray(
    models: Models,
    pairs: StereoDataset,
    options: dict[str, Any],
    indices: list[int],
    maps: dict[str, ErrorMaps],
    address: str,
    workers: int | None,
) -> Iterator[Evaluation]:
    """The same scores, computed by workers; only what is drawn is read here."""
    from aanet.cluster.evaluation import ScoringWork, score_pairs
    from aanet.evaluation.evaluate import of_results

    models = replace(models, opening=replace(models.opening, threads=models.opening.threads or 1))
    for name, source in models.sources.items():
        matcher, origin = models.open(name)
        arguments = models.opening.among(list(models.sources.values()), source).arguments(source)
        drawing = maps.get(name)
        work = ScoringWork(
            (pairs.name, pairs.root.absolute(), pairs.split),
            options,
            arguments,
            models.matching,
            models.opening.threads or 1,
            frozenset() if drawing is None else drawing.indices,
        )
        scores = track(score_pairs(work, indices, address, workers), f"{name}, {pairs.name}", len(indices))
        results = {scored.place: scored for scored in scores}
        for index in sorted(results):
            dense = results[index].dense
            if drawing is not None and dense is not None:
                drawing(index, pairs[index], dense)
        in_order = [results[index].result for index in indices]
        yield of_results(in_order, pairs, name, matcher.spec.name, source, origin)


def _score_folders(
    folders: Mapping[str, Path],
    pairs: StereoDataset,
    indices: list[int],
    strict: bool,
    maps: dict[str, ErrorMaps],
) -> list[Evaluation]:
    from aanet.evaluation.map_files import find_maps
    from aanet.evaluation.predictions import evaluate_predictions

    evaluations = []
    for name, folder in folders.items():
        with progress_bar(name, len(indices)) as advance:
            found, observe = find_maps(folder, pairs), maps.get(name)
            evaluations.append(
                evaluate_predictions(
                    found, pairs, model=name, indices=indices, strict=strict, observe=observe, advance=advance
                )
            )
    return evaluations
