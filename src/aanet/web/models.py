"""The matchers that a server offers, each with its own process, threads and queue."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Iterator
from pathlib import Path

from aanet.engines.classical import CLASSICAL
from aanet.engines.factory import find_source, other_models
from aanet.engines.foreign.files import is_foreign
from aanet.errors import AanetError, InputError
from aanet.models.weights import files
from aanet.web.child import MatcherProcess
from aanet.web.errors import MAX_RETRY_AFTER, ServiceError, unusable
from aanet.web.matching import Facts, Matched, Matchers, MatchRequest, StartMatching, not_available
from aanet.web.settings import Settings
from aanet.web.uploads import UploadedPair
from aanet.web.workers import Worker

log = logging.getLogger("aanet.web")

_LATEST_WEIGHT = 0.3  # of the latest run in the running means
_SPANS = ("queue", "decode", "match", "encode")


class ServedModel:
    """A matcher with its public name and its queue; it is opened on first use, in a thread of its worker."""

    def __init__(
        self, name: str, source: str, settings: Settings, start: StartMatching | None = None
    ) -> None:
        self.name = name
        kind: StartMatching = start or (MatcherProcess if settings.isolate else Matchers)
        spec = settings.network_spec if is_foreign(Path(source)) else None
        self.matching = kind(name, source, settings.max_pixels, network_spec=spec)
        self.worker = Worker(settings.queue, self.matching.at_once)
        self.facts: Facts | None = None  # until it is first opened
        self.restarts = 0
        self.seconds_per_megapixel: float | None = None
        self._seconds_per_turn: float | None = None

    def open(self) -> None:
        """Open the matcher with its default search range if necessary."""
        self.facts = self.matching.open()

    def match(self, pair: UploadedPair, request: MatchRequest, deadline: float, submitted: float) -> Matched:
        """Process a request, in a thread of the worker; `submitted` is a time of `time.perf_counter`."""
        start = time.perf_counter()
        try:
            self.open()
        except AanetError:
            raise not_available(self.name) from None
        try:
            matched = self.matching.match(pair, request, deadline)
        finally:
            if not self.matching.is_open:  # before the next request comes
                self.restarts += 1
                self.worker.threads.submit(self.open_again)
        self._update_speed(matched, time.perf_counter() - start)
        milliseconds = [1000 * span for span in (start - submitted, *matched.spans)]
        timing = ", ".join(f"{n};dur={span:.1f}" for n, span in zip(_SPANS, milliseconds, strict=True))
        return matched._replace(headers={**matched.headers, "Server-Timing": timing})

    def open_again(self) -> None:
        """Open the matcher after a failure; errors are only logged."""
        with contextlib.suppress(ServiceError):  # the server is stopping
            try:
                self.open()
            except AanetError:  # the next request tries it again
                log.exception("the matcher %s cannot be opened", self.name)

    @property
    def retry_after(self) -> int:
        """Estimated seconds until the requests that have a slot are finished."""
        estimate = self.worker.taken * (self._seconds_per_turn or 1.0) / self.worker.at_once
        return min(max(math.ceil(estimate), 1), MAX_RETRY_AFTER)

    def _update_speed(self, matched: Matched, seconds_of_turn: float) -> None:
        """Update the running means, from which clients estimate progress and the server `retry_after`."""
        speed = 1e6 * matched.seconds / max(matched.pixels, 1)
        self.seconds_per_megapixel = _mean(self.seconds_per_megapixel, speed)
        self._seconds_per_turn = _mean(self._seconds_per_turn, seconds_of_turn)


class Catalog:
    """All models of a server; the first is the default."""

    def __init__(self, settings: Settings, start: StartMatching | None = None) -> None:
        named = named_models(settings.models or default_models())
        self._models = {name: ServedModel(name, source, settings, start) for name, source in named.items()}
        if settings.open_at_once:
            self.default.open()

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    def __contains__(self, name: str) -> bool:
        return name in self._models

    @property
    def default(self) -> ServedModel:
        """The model for requests that name none."""
        return next(iter(self._models.values()))

    def find(self, name: str | None) -> ServedModel:
        """Return the model of a name; paths are not accepted, only the names of this catalog."""
        if name is None:
            return self.default
        if name not in self._models:
            known = ", ".join(self._models)
            raise unusable("unknown_model", f"This server has no matcher of that name; it has {known}.")
        return self._models[name]

    def stop(self) -> None:
        """Finish running requests and refuse all others."""
        for model in self:
            model.worker.close()

    def close(self) -> None:
        """End all child processes."""
        for model in self:
            model.matching.close()


def _mean(before: float | None, latest: float) -> float:
    return latest if before is None else (1 - _LATEST_WEIGHT) * before + _LATEST_WEIGHT * latest


def named_models(sources: tuple[str, ...]) -> dict[str, str]:
    """Return the models by their public names; raises `AanetError` if one of them does not exist."""
    named = {_public_name(source): source for source in sources}
    if len(named) < len(sources):
        raise InputError(f"Two models have the same name: {', '.join(map(_public_name, sources))}.")
    for source in sources:
        if source not in CLASSICAL:
            find_source(source, None, None, other_models())
    return named


def default_models() -> tuple[str, ...]:
    """Return all bundled weights, the default first, followed by SGBM."""
    return (*files.bundled_names(), "sgbm")


def _public_name(source: str) -> str:
    """Return the name of a model: of a file, its name without folder and suffix."""
    path = Path(source)
    return path.stem if path.suffix else source
