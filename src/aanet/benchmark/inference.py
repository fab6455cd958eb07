"""Time and memory of predictions: models × engines, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from aanet.benchmark.baseline import as_baseline, random_pair
from aanet.benchmark.memory import peak_memory
from aanet.benchmark.models import OPENCV, BenchmarkModel
from aanet.engines.factory import find_source, open_engine
from aanet.engines.processor import this_processor
from aanet.engines.table import ENGINES, network_engines
from aanet.engines.torch import using_threads
from aanet.evaluation import paper
from aanet.evaluation.origin import digest_of, versions_of
from aanet.evaluation.timing import Timing, time_interleaved
from aanet.inference.spec import EngineUnavailableError
from aanet.models.complexity import Complexity
from aanet.models.network import StereoNetwork
from aanet.models.weights import checkpoint

BASELINE = "baseline"


def engine_choices() -> dict[str, tuple[str, str] | None]:
    """Engine and precision by the name that a user gives; None for the baseline."""
    choices: dict[str, tuple[str, str] | None] = {BASELINE: None}
    for name in network_engines():
        choices[name] = (name, "float32")
        if ENGINES[name].bf16 is not None:
            choices[f"{name}-bf16"] = (name, "bf16")
    return choices


def engines_of(model: BenchmarkModel, engines: Sequence[str]) -> Sequence[str]:
    """The engines that a model is measured on: SGBM and files have their own."""
    return engines if model.own_engine is None else (model.own_engine,)


@dataclass(frozen=True)
class Measurement:
    """One model on one engine.

    Attributes:
        model: What was measured.
        engine: Where it was measured, one of `engine_choices`, or the model's own.
        timing: None if the engine cannot run the network.
        peak_memory: Bytes of a prediction with torch (SGBM and files: with their own engine), for every
            engine the same; None if it was not measured.
        cost: None for SGBM and files.
    """

    model: BenchmarkModel
    engine: str
    timing: Timing | None
    peak_memory: int | None
    cost: Complexity | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, with the paper's row if there is one."""
        row = paper.COMPARISON_3D.get(self.model.network)
        return {
            "name": self.model.name,
            "source": self.model.source,
            "network": self.model.network,
            "weights": "random" if self.model.has_random_weights else digest_of(self.model.source),
            "engine": self.engine,
            "median_s": self.timing and self.timing.median,
            "p10_s": self.timing and self.timing.percentile(10),
            "p90_s": self.timing and self.timing.percentile(90),
            "seconds": self.timing and self.timing.seconds,
            "peak_memory": self.peak_memory,
            **(asdict(self.cost) if self.cost else {}),
            "paper": row and asdict(row),
        }


@dataclass(frozen=True)
class Conditions:
    """The machine and the settings of a benchmark."""

    size: tuple[int, int]
    rounds: int
    threads: int
    processor: str
    versions: dict[str, str]

    def sentence(self) -> str:
        """One line for people."""
        return f"One pair of {self.size[0]}×{self.size[1]}, {self.machine()}"

    def machine(self) -> str:
        """The part of the line that does not depend on the images."""
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return (
            f"median of {self.rounds} interleaved rounds after a warm-up, "
            f"{self.threads} threads of {self.processor}; {versions}."
        )


def conditions(
    size: tuple[int, int],
    rounds: int,
    threads: int | None = None,
    engines: Iterable[str] = ("torch", "openvino"),
) -> Conditions:
    """Describe this machine and this run.

    Args:
        size: Of the images.
        rounds: Of the benchmark.
        threads: The number that was requested.
        engines: The engines that were measured, as in `engine_choices` or their own.
    """
    versions: dict[str, str] = {}
    for engine in engines:
        name = "torch" if engine == BASELINE else engine.removesuffix("-bf16")
        versions.update(versions_of(name, opencv=name == OPENCV))
    return Conditions(size, rounds, threads or torch.get_num_threads(), this_processor().name, versions)


def measure(
    models: Sequence[BenchmarkModel],
    engines: Sequence[str],
    size: tuple[int, int],
    rounds: int,
    memory: bool = True,
    observe: Callable[[str], None] = lambda _: None,
    *,
    device: str | None = None,
    threads: int | None = None,
) -> list[Measurement]:
    """Time all models on all engines, interleaved in one run; device and threads are those of networks."""
    for model in models:
        model.sizes.check(*size, model.name)
    runs: dict[str, Callable[[], object]] = {}
    for model in models:
        for engine in engines_of(model, engines):
            observe(f"preparing {model.name} on {engine}")
            try:
                runs[f"{model.name} on {engine}"] = _prediction(model, engine, size, device, threads)
            except EngineUnavailableError:
                continue  # the table says that this engine cannot run it
    timings = time_interleaved(runs, rounds, observe)
    measurements = []
    for model in models:
        observe(f"memory of {model.name}")
        computes = "torch" if model.is_network else None
        peak = peak_memory(**model.arguments, size=size, engine=computes) if memory else None
        cost = model.cost(size)
        measurements += [
            Measurement(model, engine, timings.get(f"{model.name} on {engine}"), peak, cost)
            for engine in engines_of(model, engines)
        ]
    return measurements


def speedup(measurement: Measurement, measurements: list[Measurement]) -> float | None:
    """How many times as fast as the baseline of the same model; None if either is missing."""
    for other in measurements:
        if other.model == measurement.model and other.engine == BASELINE:
            if other.timing is None or measurement.timing is None:
                return None
            return other.timing.median / measurement.timing.median
    return None


def _prediction(
    model: BenchmarkModel, engine: str, size: tuple[int, int], device: str | None, threads: int | None
) -> Callable[[], object]:
    """A function that predicts one pair of random images."""
    if engine == BASELINE:
        baseline, pair = as_baseline(_network(model)), random_pair(size)

        def run_baseline() -> object:
            with torch.inference_mode(), using_threads(threads):
                return baseline(*pair)

        return run_baseline
    if model.own_engine is not None:
        opened = open_engine(**model.arguments, threads=threads)
    else:
        chosen, precision = engine_choices()[engine] or (None, "auto")
        opened = open_engine(
            **model.arguments, engine=chosen, precision=precision, device=device, threads=threads
        )
    left, right = np.random.default_rng(0).random((2, 1, 3, *size), dtype=np.float32)
    return lambda: opened(left, right)


def _network(model: BenchmarkModel) -> StereoNetwork:
    found = find_source(model.source, model.arguments["weights"], model.max_disparity)
    if isinstance(found, StereoNetwork):
        return found
    return checkpoint.load(found, training_heads=False, max_disparity=model.max_disparity)
