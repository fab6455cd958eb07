"""Processing of a request within a deadline: slot, upload, queue, matching and response."""

from __future__ import annotations

import asyncio
import json
import math
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise

from fastapi import Request
from starlette.requests import ClientDisconnect

from aanet.errors import AanetError
from aanet.inference.save_options import SaveOptions
from aanet.inference.tiling import Tile, bytes_per_pixel, tile_for
from aanet.matcher import StereoMatcher
from aanet.web.errors import ServiceError, busy, refused
from aanet.web.formats import Encoded, encode, require_possible
from aanet.web.forms import read_form
from aanet.web.metrics import DISCONNECTED, Metrics
from aanet.web.models import MAX_RETRY_AFTER, Catalog, ServedModel
from aanet.web.responses import MatchResponse
from aanet.web.settings import Settings
from aanet.web.uploads import PARTS, CalibrationOptions, UploadedPair, read_pair, require_side
from aanet.web.workers import Slot, stopping

_Done = tuple[Encoded, dict[str, str]]  # body and headers of a response


@dataclass(frozen=True)
class MatchRequest:
    """The query parameters of a request."""

    format: str
    max_disparity: int | None
    scale: float | None  # None for the scale that the model recommends
    check: bool
    calibration: CalibrationOptions
    saving: SaveOptions


class Service:
    """The matchers with their queues and metrics."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.catalog = Catalog(settings)
        self.metrics = Metrics(self.catalog)
        self.stopping = False
        self.wrong_token = asyncio.Lock()  # held while a wrong token is answered
        # Not the thread of a matcher, so that a wrong upload is refused before its turn.
        self._reader = ThreadPoolExecutor(1, "uploads")

    def stop(self) -> None:
        """Finish running requests and refuse all others."""
        self.stopping = True
        self.catalog.close()

    async def match(self, request: Request, model: ServedModel, match_request: MatchRequest) -> MatchResponse:
        """Process a request; its slot is released when the response has been sent."""
        deadline = asyncio.get_running_loop().time() + self.settings.timeout
        try:
            with ExitStack() as held:
                slot = held.enter_context(model.worker.slot(model.retry_after))
                pair = await self._upload(request, deadline, match_request.calibration)
                self._check_limits(pair, match_request)
                work = partial(_match, model, pair, match_request, self, time.perf_counter())
                encoded, headers = await self._wait(request, slot, work, deadline, model)
                return MatchResponse(encoded, headers, deadline, held.pop_all())
        except ClientDisconnect:
            self.metrics.disconnects.inc()
            # Never delivered, because the connection is closed.
            raise ServiceError(DISCONNECTED, "disconnected", "The client disconnected.") from None

    async def _upload(
        self, request: Request, deadline: float, calibration: CalibrationOptions
    ) -> UploadedPair:
        remaining = deadline - asyncio.get_running_loop().time()

        async def read() -> UploadedPair:
            parts = await read_form(request, PARTS)
            check = partial(read_pair, parts, self.settings.max_pixels, calibration)
            return await asyncio.get_running_loop().run_in_executor(self._reader, check)

        try:
            return await asyncio.wait_for(read(), remaining)
        except asyncio.TimeoutError:
            message = f"The upload took longer than {self.settings.timeout:g} seconds."
            raise ServiceError(408, "too_slow", message) from None

    def _check_limits(self, pair: UploadedPair, match_request: MatchRequest) -> None:
        require_possible(match_request.format, pair.calibration is not None, match_request.check)
        scale = match_request.scale or 1.0
        require_side(max(pair.width, pair.height) * scale)
        pixels = pair.width * pair.height * scale**2
        if pixels > self.settings.max_pixels:
            limit = f"{self.settings.max_pixels / 1e6:g}"
            message = f"At that scale the images have {pixels / 1e6:.1f} megapixels; the limit is {limit}."
            raise ServiceError(413, "too_many_pixels", message)

    async def _wait(
        self, request: Request, slot: Slot, work: partial[_Done], deadline: float, model: ServedModel
    ) -> _Done:
        """Wait for the result, a disconnect of the client, or the deadline."""
        task = slot.submit(work)
        disconnect = asyncio.create_task(_wait_for_disconnect(request))
        try:
            remaining = deadline - asyncio.get_running_loop().time()
            done, _ = await asyncio.wait(
                {task, disconnect}, timeout=max(remaining, 0), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            disconnect.cancel()
        if task in done:
            if task.cancelled():
                raise stopping(MAX_RETRY_AFTER)
            return task.result()
        if disconnect in done:
            raise ClientDisconnect
        message = f"No result within {self.settings.timeout:g} seconds; retry later or at scale=0.5."
        raise busy("timeout", message, model.retry_after)


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


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _match(
    model: ServedModel, pair: UploadedPair, request: MatchRequest, service: Service, submitted: float
) -> _Done:
    """Decode, match and encode a pair, in the thread of the matcher."""
    times = [submitted, time.perf_counter()]
    matcher = model.open_range(request.max_disparity)
    pixels = pair.width * pair.height
    try:
        left, right = pair.decode()
        times.append(time.perf_counter())
        recommended = matcher.spec.hints.scale_for(pair.width)
        scale = request.scale or affordable_scale(recommended, pixels, service.settings.max_pixels)
        require_memory(matcher, pair.width * scale, pair.height * scale)
        result = matcher(left, right, calibration=pair.calibration, scale=scale, check=request.check)
    except AanetError as error:
        raise refused("cannot_match", error) from None
    times.append(time.perf_counter())
    encoded = encode(result, request.format, request.saving)
    times.append(time.perf_counter())
    service.metrics.match_seconds.labels(model.name).observe(result.seconds)
    model.update_speed(result.seconds, round(pixels * scale**2) * (1 + request.check), times[-1] - times[1])
    spans = [1000 * (after - before) for before, after in pairwise(times)]
    names = ("queue", "decode", "match", "encode")
    return encoded, {
        "Aanet-Model": model.name,
        "Aanet-Engine": result.engine.encode("ascii", "replace").decode(),
        "Aanet-Warnings": json.dumps(result.warnings),
        "Aanet-Camera": json.dumps(None if result.camera is None else asdict(result.camera)),
        "Server-Timing": ", ".join(f"{n};dur={span:.1f}" for n, span in zip(names, spans, strict=True)),
    }
