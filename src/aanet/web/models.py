"""The matchers that a server offers, each with its own thread and queue."""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from aanet.engines.factory import find_source, other_models
from aanet.errors import AanetError, InputError, UnsupportedError
from aanet.matcher import StereoMatcher
from aanet.models.weights import files
from aanet.web.errors import ServiceError, unusable
from aanet.web.settings import Settings
from aanet.web.workers import Worker

log = logging.getLogger("aanet.web")

OPEN_RANGES = 2  # matchers kept open per model: its default search range and the last other one requested
MAX_RETRY_AFTER = 60  # seconds
_LATEST_WEIGHT = 0.3  # of the latest run in the running means


class ServedModel:
    """A matcher with its public name; it is opened on first use, in its worker's thread."""

    def __init__(self, name: str, source: str, queue: int) -> None:
        self.name = name
        self.worker = Worker(queue)
        self.seconds_per_megapixel: float | None = None
        self._seconds_per_turn: float | None = None
        self._source = source
        self._open: OrderedDict[int | None, StereoMatcher] = OrderedDict()

    @property
    def matcher(self) -> StereoMatcher | None:
        """The matcher with its default search range, or None if it is not open yet."""
        return self._open.get(None)

    def open(self) -> StereoMatcher:
        """Return the matcher with its default search range, opening it if necessary."""
        if None not in self._open:
            self._open[None] = StereoMatcher(self._source)
        return self._open[None]

    def open_range(self, max_disparity: int | None) -> StereoMatcher:
        """Return the matcher with a search range; at most `OPEN_RANGES` matchers stay open."""
        try:
            default = self.open()
        except AanetError:
            raise self._not_available() from None
        if max_disparity in (None, default.spec.max_disparity):
            return default
        if max_disparity not in self._open:
            try:
                matcher = StereoMatcher(self._source, max_disparity=max_disparity)
            except (InputError, UnsupportedError):
                raise unusable(
                    "wrong_range",
                    f"{self.name} has a maximum disparity of {default.spec.max_disparity}, which cannot be "
                    f"changed to {max_disparity}; scale=0.5 doubles it to {2 * default.spec.max_disparity}.",
                ) from None
            except AanetError:
                raise self._not_available() from None
            while len(self._open) >= OPEN_RANGES:
                self._open.popitem(last=True)  # keeps the first, the default range
            self._open[max_disparity] = matcher
        return self._open[max_disparity]

    def _not_available(self) -> ServiceError:
        log.exception("the matcher %s cannot be opened", self.name)
        message = f"The matcher {self.name} cannot be opened; see the server's log."
        return ServiceError(503, "not_available", message, {"Retry-After": "60"})

    @property
    def retry_after(self) -> int:
        """Estimated seconds until the requests that have a slot are finished."""
        estimate = self.worker.taken * (self._seconds_per_turn or 1.0)
        return min(max(math.ceil(estimate), 1), MAX_RETRY_AFTER)

    def update_speed(self, seconds: float, pixels: int, seconds_of_turn: float) -> None:
        """Update the running means, from which clients estimate progress and the server `retry_after`.

        Args:
            seconds: Matching time.
            pixels: Number of pixels that were matched.
            seconds_of_turn: Time in the thread, with decoding and encoding.
        """
        self.seconds_per_megapixel = _mean(self.seconds_per_megapixel, 1e6 * seconds / max(pixels, 1))
        self._seconds_per_turn = _mean(self._seconds_per_turn, seconds_of_turn)


class Catalog:
    """All models of a server; the first is the default, which is opened at once."""

    def __init__(self, settings: Settings) -> None:
        sources = settings.models or default_models()
        named = {_public_name(source): source for source in sources}
        if len(named) < len(sources):
            raise InputError(f"Two models have the same name: {', '.join(map(_public_name, sources))}.")
        for source in sources:
            if source != "sgbm":
                find_source(source, None, None, other_models())
        self._models = {name: ServedModel(name, source, settings.queue) for name, source in named.items()}
        self.default.open()

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

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

    def close(self) -> None:
        """Finish running requests and refuse all others."""
        for model in self:
            model.worker.close()


def _mean(before: float | None, latest: float) -> float:
    return latest if before is None else (1 - _LATEST_WEIGHT) * before + _LATEST_WEIGHT * latest


def default_models() -> tuple[str, ...]:
    """Return all bundled weights, `aanet` first, followed by SGBM."""
    bundled = sorted(files.bundled_names(), key=lambda name: (name != "aanet", name))
    return (*bundled, "sgbm")


def _public_name(source: str) -> str:
    """Return the name of a model: of a file, its name without folder and suffix."""
    path = Path(source)
    return path.stem if path.suffix else source
