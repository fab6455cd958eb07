"""From an uploaded pair to the body of a response, by one model; runs in the server or in a child process."""

from __future__ import annotations

import json
import logging
import math
import time
from collections import OrderedDict
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

from aanet import outputs
from aanet.errors import AanetError, InputError, UnsupportedError
from aanet.inference.save_options import SaveOptions
from aanet.inference.tiling import Tile, bytes_per_pixel, tile_for
from aanet.matcher import StereoMatcher
from aanet.web.errors import ServiceError, refused, unusable
from aanet.web.uploads import CalibrationOptions, UploadedPair

log = logging.getLogger("aanet.web")

OPEN_RANGES = 2  # matchers kept open per model: its default search range and the last other one requested


@dataclass(frozen=True)
class MatchRequest:
    """The query parameters of a request."""

    format: str
    max_disparity: int | None
    scale: float | None  # None for the scale that the model recommends
    check: bool
    calibration: CalibrationOptions = field(default_factory=CalibrationOptions)
    saving: SaveOptions = field(default_factory=SaveOptions)


class Facts(NamedTuple):
    """What clients may know about an open matcher."""

    max_disparity: int
    upscale_to: int
    engine: str


class Matched(NamedTuple):
    """The result of a request: the body and headers of its response, and what the work has cost.

    Attributes:
        data: The encoded result.
        media_type: The media type of `data`.
        file_name: The name under which a client would save `data`.
        headers: Headers of the response.
        seconds: Matching time.
        pixels: Number of pixels that were matched.
        spans: Seconds for decoding, matching and encoding.
    """

    data: bytes
    media_type: str
    file_name: str
    headers: dict[str, str]
    seconds: float
    pixels: int
    spans: tuple[float, ...]


class Opener(Protocol):
    """How a model is opened: as by `StereoMatcher`."""

    def __call__(
        self, model: str, *, max_disparity: int | None = None, network_spec: str | None = None
    ) -> StereoMatcher:
        """Open a model with a search range; None for its default one."""


class Matching(Protocol):
    """Answers requests for one model.

    `Matchers` does it in this process, `MatcherProcess` in a child process, and `Replicas` of
    `aanet.cluster` on other machines.
    """

    @property
    def at_once(self) -> int:
        """The maximum number of requests at a time."""

    @property
    def is_open(self) -> bool:
        """Whether the default search range is open."""

    @property
    def memory(self) -> int:
        """Resident memory of the child process in bytes; 0 if there is none."""

    def open(self) -> Facts:
        """Open the model with its default search range, unless it is open."""

    def match(self, pair: UploadedPair, request: MatchRequest, deadline: float) -> Matched:
        """Decode, match and encode a pair; `deadline` is a time of `time.monotonic`."""

    def close(self) -> None:
        """Stop at once."""


class StartMatching(Protocol):
    """How a server gets the `Matching` of a model: by one of the classes, or as `aanet.cluster` does."""

    def __call__(
        self, name: str, source: str, max_pixels: int, *, network_spec: str | None = None
    ) -> Matching:
        """Return it, not yet open."""


class Matchers:
    """The matchers of one model, in this process: a running match cannot be stopped."""

    at_once = 1
    memory = 0

    def __init__(
        self,
        name: str,
        source: str,
        max_pixels: int,
        opener: Opener = StereoMatcher,
        *,
        network_spec: str | None = None,
    ) -> None:
        self._name = name
        self._source = source
        self._max_pixels = max_pixels
        self._opener = opener if network_spec is None else partial(opener, network_spec=network_spec)
        self._open: OrderedDict[int | None, StereoMatcher] = OrderedDict()

    @property
    def is_open(self) -> bool:
        """See `Matching`."""
        return None in self._open

    def open(self) -> Facts:
        """See `Matching`."""
        if None not in self._open:
            self._open[None] = self._opener(self._source)
        matcher = self._open[None]
        return Facts(matcher.spec.max_disparity, matcher.spec.hints.upscale_to, matcher.engine.description)

    def match(self, pair: UploadedPair, request: MatchRequest, deadline: float) -> Matched:
        """See `Matching`."""
        del deadline
        try:
            return self._match(pair, request)
        except MemoryError:
            log.exception("%s ran out of memory", self._name)
            message = "Matching this pair needs more memory than is free; send smaller images."
            raise ServiceError(413, "too_much_memory", message) from None
        except AanetError as error:
            raise refused("cannot_match", error) from None

    def close(self) -> None:
        """See `Matching`."""

    def _match(self, pair: UploadedPair, request: MatchRequest) -> Matched:
        matcher = self._open_range(request.max_disparity)
        pixels = pair.width * pair.height
        times = [time.perf_counter()]
        left, right = pair.decode()
        times.append(time.perf_counter())
        recommended = matcher.spec.hints.scale_for(pair.width)
        scale = request.scale or affordable_scale(recommended, pixels, self._max_pixels)
        require_memory(matcher, pair.width * scale, pair.height * scale)
        result = matcher(left, right, calibration=pair.calibration, scale=scale, check=request.check)
        times.append(time.perf_counter())
        chosen = outputs.find(request.format)
        data = outputs.encode(result, request.format, request.saving)
        times.append(time.perf_counter())
        return Matched(
            data,
            chosen.type.media_type,
            chosen.file_name,
            {
                "Aanet-Model": self._name,
                "Aanet-Engine": result.engine.encode("ascii", "replace").decode(),
                "Aanet-Warnings": json.dumps(result.warnings),
                "Aanet-Camera": json.dumps(None if result.camera is None else asdict(result.camera)),
            },
            result.seconds,
            round(pixels * scale**2) * (1 + request.check),
            tuple(after - before for before, after in pairwise(times)),
        )

    def _open_range(self, max_disparity: int | None) -> StereoMatcher:
        """Return the matcher with a search range; at most `OPEN_RANGES` matchers stay open."""
        self.open()
        default = self._open[None]
        if max_disparity in (None, default.spec.max_disparity):
            return default
        if max_disparity not in self._open:
            try:
                matcher = self._opener(self._source, max_disparity=max_disparity)
            except (InputError, UnsupportedError):
                raise unusable(
                    "wrong_range",
                    f"{self._name} has a maximum disparity of {default.spec.max_disparity}, which cannot be "
                    f"changed to {max_disparity}; scale=0.5 doubles it to {2 * default.spec.max_disparity}.",
                ) from None
            except AanetError:
                raise not_available(self._name) from None
            while len(self._open) >= OPEN_RANGES:
                self._open.popitem(last=True)  # keeps the first, the default range
            self._open[max_disparity] = matcher
        return self._open[max_disparity]


def not_available(name: str) -> ServiceError:
    """Return the 503 of a model that cannot be opened, and log the exception that is being handled."""
    log.exception("the matcher %s cannot be opened", name)
    message = f"The matcher {name} cannot be opened; see the server's log."
    return ServiceError(503, "not_available", message, {"Retry-After": "60"})


def require_memory(matcher: StereoMatcher, width: float, height: float) -> None:
    """Refuse a pair for which even the smallest tile needs more memory than is free."""
    spec, available = matcher.spec, matcher.engine.available_memory()
    sides = spec.sizes.round_up(math.ceil(height)), spec.sizes.round_up(math.ceil(width))
    tile = tile_for(spec, *sides, available) or Tile(*sides)
    needed = tile.height * tile.width * bytes_per_pixel(spec, tile.width)
    if needed > available:
        message = f"Images of this size need about {needed / 1e9:.1f} GB of memory, which is not free."
        raise ServiceError(413, "too_much_memory", message)


def affordable_scale(recommended: float, pixels: int, max_pixels: int) -> float:
    """Limit the upscaling of an image so that it stays within `max_pixels`."""
    return min(recommended, max(math.sqrt(max_pixels / pixels), 1.0))


def as_json(matched: Matched) -> dict[str, Any]:
    """Return everything but the data, for `from_json` in another process."""
    return {name: value for name, value in matched._asdict().items() if name != "data"}


def from_json(values: dict[str, Any], data: bytes) -> Matched:
    """Undo `as_json`."""
    return Matched(data=data, **{**values, "spans": tuple(values["spans"])})
