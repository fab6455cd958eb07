"""Prediction, measured: networks × engines, side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from aanet.benchmark.baseline import as_baseline, random_pair
from aanet.benchmark.memory import peak_memory
from aanet.engines.factory import open_engine
from aanet.engines.processor import this_processor
from aanet.engines.table import ENGINES, network_engines
from aanet.evaluation import paper
from aanet.evaluation.timing import Timing, time_interleaved
from aanet.inference.spec import EngineUnavailableError
from aanet.models import zoo
from aanet.models.complexity import Complexity, complexity, size_rule
from aanet.version import __version__

BASELINE = "baseline"


def contenders() -> dict[str, tuple[str, str] | None]:
    """What can be measured, by the name that a user gives: an engine and its precision, or the baseline."""
    choices: dict[str, tuple[str, str] | None] = {BASELINE: None}
    for name in network_engines():
        choices[name] = (name, "float32")
        if ENGINES[name].bf16 is not None:
            choices[f"{name}-bf16"] = (name, "bf16")
    return choices


@dataclass(frozen=True)
class Measurement:
    """One network on one engine; `timing` is None where the engine cannot run the network."""

    network: str
    engine: str
    timing: Timing | None
    peak_memory: int | None  # bytes of an eager prediction, the same for all engines of a network
    cost: Complexity

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, with the paper's row where there is one."""
        row = paper.COMPARISON_3D.get(self.network)
        return {
            "network": self.network,
            "engine": self.engine,
            "median_s": self.timing and self.timing.median,
            "p10_s": self.timing and self.timing.percentile(10),
            "p90_s": self.timing and self.timing.percentile(90),
            "seconds": self.timing and self.timing.seconds,
            "peak_memory": self.peak_memory,
            **asdict(self.cost),
            "paper": row and asdict(row),
        }


@dataclass(frozen=True)
class Conditions:
    """What was measured, on what."""

    size: tuple[int, int]
    rounds: int
    threads: int
    processor: str
    versions: dict[str, str]

    def sentence(self) -> str:
        """One line for people."""
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        height, width = self.size
        return (
            f"One pair of {height}×{width}, median of {self.rounds} interleaved rounds after a warm-up, "
            f"{self.threads} threads of {self.processor}; {versions}."
        )


def conditions(size: tuple[int, int], rounds: int) -> Conditions:
    """Describe this machine and this run."""
    import openvino

    versions = {"aanet": __version__, "torch": torch.__version__, "openvino": openvino.__version__}
    versions["openvino"] = versions["openvino"].split("-")[0]
    return Conditions(size, rounds, torch.get_num_threads(), this_processor().name, versions)


def measure(
    networks: list[str],
    engines: list[str],
    size: tuple[int, int],
    rounds: int,
    memory: bool = True,
    observe: Callable[[str], None] = lambda _: None,
) -> list[Measurement]:
    """Time networks on engines in turn, all engines of all networks in one run."""
    for name in networks:
        size_rule(name).check(*size, name)
    runs, absent = {}, []
    for name in networks:
        for engine in engines:
            observe(f"preparing {name} on {engine}")
            try:
                runs[f"{name} on {engine}"] = _contender(name, engine, size)
            except EngineUnavailableError:
                absent.append(f"{name} on {engine}")
    timings = time_interleaved(runs, rounds, observe)
    measurements = []
    for name in networks:
        observe(f"memory of {name}")
        peak = peak_memory(name, size) if memory else None
        cost = complexity(name, size)
        measurements += [
            Measurement(name, engine, timings.get(f"{name} on {engine}"), peak, cost) for engine in engines
        ]
    return measurements


def speedup(measurement: Measurement, measurements: list[Measurement]) -> float | None:
    """How many times as fast as the baseline of the same network; None where either is missing."""
    for other in measurements:
        if other.network == measurement.network and other.engine == BASELINE:
            if other.timing is None or measurement.timing is None:
                return None
            return other.timing.median / measurement.timing.median
    return None


def _contender(name: str, engine: str, size: tuple[int, int]) -> Callable[[], object]:
    choice = contenders()[engine]
    if choice is None:
        baseline, pair = as_baseline(zoo.build(name, seed=0).eval()), random_pair(size)

        def run_baseline() -> object:
            with torch.inference_mode():
                return baseline(*pair)

        return run_baseline
    opened = open_engine(name, weights="random", engine=choice[0], precision=choice[1])
    left, right = np.random.default_rng(0).random((2, 1, 3, *size), dtype=np.float32)
    return lambda: opened(left, right)
