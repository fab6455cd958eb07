"""Metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from aanet.web.models import ServedModel

DISCONNECTED = 499  # the status of a response that nobody receives
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")  # clients can invent others
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120)


class Metrics:
    """The metrics of one server, in a registry of its own."""

    def __init__(self, models: Iterable[ServedModel]) -> None:
        self._registry = CollectorRegistry()
        self._responses = Counter(
            "aanet_responses",
            "Responses by method and status; the method of an invalid request is empty.",
            ["method", "status"],
            registry=self._registry,
        )
        self.disconnects = Counter(
            "aanet_client_disconnects",
            "Clients that disconnected before the response.",
            registry=self._registry,
        )
        self.match_seconds = Histogram(
            "aanet_match_seconds",
            "Matching time.",
            ["model"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._registry.register(_Matchers(models))
        ProcessCollector(registry=self._registry)

    def count(self, method: str, status: int) -> None:
        """Count a response."""
        if status != DISCONNECTED:
            self._responses.labels(method if method in _METHODS else "", status).inc()

    def text(self) -> bytes:
        """Return the metrics in the text exposition format."""
        return generate_latest(self._registry)


class _Matchers(Collector):
    """The state of the matchers, read on each scrape."""

    def __init__(self, models: Iterable[ServedModel]) -> None:
        self._models = list(models)

    def collect(self) -> Iterator[Metric]:
        """See prometheus_client."""
        taken = GaugeMetricFamily("aanet_slots_taken", "Running and waiting requests.", labels=["model"])
        memory = GaugeMetricFamily(
            "aanet_matcher_memory_bytes", "Resident memory of the matcher's process.", labels=["model"]
        )
        restarts = CounterMetricFamily(
            "aanet_matcher_restarts", "Processes that crashed or were stopped.", labels=["model"]
        )
        for model in self._models:
            taken.add_metric([model.name], model.worker.taken)
            memory.add_metric([model.name], model.matching.memory)
            restarts.add_metric([model.name], model.restarts)
        yield from (taken, memory, restarts)
