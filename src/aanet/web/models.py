"""Which matchers a server offers, each with its own thread and queue."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from aanet.engines.factory import find_source, other_models
from aanet.errors import AanetError, InputError
from aanet.matcher import StereoMatcher
from aanet.models.weights import files
from aanet.web.errors import ServiceError, unusable
from aanet.web.settings import Settings
from aanet.web.workers import Worker

log = logging.getLogger("aanet.web")

OPEN_RANGES = 2  # matchers kept for each model: its own search range, and the last other one asked for
_LEARNING_RATE = 0.3  # weight of the latest run in the running mean of the speed


class ServedModel:
    """A matcher by the name that clients know it by; opened when first needed, in its worker's thread."""

    def __init__(self, name: str, source: str, queue: int) -> None:
        self.name = name
        self.worker = Worker(queue)
        self.seconds_per_megapixel: float | None = None
        self._source = source
        self._open: OrderedDict[int | None, StereoMatcher] = OrderedDict()

    @property
    def matcher(self) -> StereoMatcher | None:
        """The matcher with its own search range, once it is open."""
        return self._open.get(None)

    def open(self) -> StereoMatcher:
        """The matcher with the range that its weights were trained for."""
        if None not in self._open:
            self._open[None] = StereoMatcher(self._source)
        return self._open[None]

    def open_range(self, max_disparity: int | None) -> StereoMatcher:
        """The matcher for a request; only `OPEN_RANGES` of them stay open."""
        try:
            own = self.open()
        except AanetError:
            log.exception("the matcher %s cannot be opened", self.name)
            message = f"The matcher {self.name} cannot be opened; the server's log says why."
            raise ServiceError(503, "not_available", message, {"Retry-After": "60"}) from None
        if max_disparity in (None, own.spec.max_disparity):
            return own
        if max_disparity not in self._open:
            try:
                matcher = StereoMatcher(self._source, max_disparity=max_disparity)
            except AanetError:
                raise unusable(
                    "wrong_range",
                    f"{self.name} searches {own.spec.max_disparity} pixels and cannot search "
                    f"{max_disparity}; scale=0.5 makes it reach {2 * own.spec.max_disparity}.",
                ) from None
            while len(self._open) >= OPEN_RANGES:
                self._open.popitem(last=True)  # the first one is its own range
            self._open[max_disparity] = matcher
        return self._open[max_disparity]

    def learn_speed(self, seconds: float, pixels: int) -> None:
        """Remember how fast it is, so that clients can show progress."""
        latest = 1e6 * seconds / max(pixels, 1)
        before = latest if self.seconds_per_megapixel is None else self.seconds_per_megapixel
        self.seconds_per_megapixel = (1 - _LEARNING_RATE) * before + _LEARNING_RATE * latest


class Catalog:
    """All models of a server; the first is the default and is open from the start."""

    def __init__(self, settings: Settings) -> None:
        sources = settings.models or default_models()
        named = {_public_name(source): source for source in sources}
        if len(named) < len(sources):
            raise InputError(f"Two models would have one name: {', '.join(map(_public_name, sources))}.")
        for source in sources:
            if source != "sgbm":
                find_source(source, None, None, other_models())
        self._models = {name: ServedModel(name, source, settings.queue) for name, source in named.items()}
        self.default.open()

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    @property
    def default(self) -> ServedModel:
        """What a request gets that asks for no model."""
        return next(iter(self._models.values()))

    def find(self, name: str | None) -> ServedModel:
        """The model of that name; never a path, only names that the operator has listed."""
        if name is None:
            return self.default
        if name not in self._models:
            known = ", ".join(self._models)
            raise unusable("unknown_model", f"There is no matcher of that name here; known: {known}.")
        return self._models[name]

    def close(self) -> None:
        """Finish what runs, refuse the rest."""
        for model in self:
            model.worker.close()


def default_models() -> tuple[str, ...]:
    """The bundled weights, `aanet` first, then SGBM, which needs none."""
    bundled = sorted(files.bundled_names(), key=lambda name: (name != "aanet", name))
    return (*bundled, "sgbm")


def _public_name(source: str) -> str:
    """A file is known by its name without folder and suffix."""
    path = Path(source)
    return path.stem if path.suffix else source
