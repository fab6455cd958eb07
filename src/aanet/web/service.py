"""One request from arrival to response: a slot, an upload, a turn, a result, all before a deadline."""

from __future__ import annotations

import asyncio
import json
import math
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise

from fastapi import Request
from starlette.requests import ClientDisconnect

from aanet.errors import AanetError
from aanet.web.errors import ServiceError, busy, unusable
from aanet.web.formats import Encoded, encode, require_possible
from aanet.web.metrics import Metrics
from aanet.web.models import Catalog, ServedModel
from aanet.web.responses import MatchResponse
from aanet.web.settings import Settings
from aanet.web.uploads import UploadedPair, read_pair
from aanet.web.workers import Slot, stopping

_LONGEST_RETRY = 60  # seconds
_Done = tuple[Encoded, dict[str, str]]  # the body of a response, and its headers


@dataclass(frozen=True)
class MatchRequest:
    """What a client asks for in the query."""

    format: str
    max_disparity: int | None
    scale: float | None  # None: as suits the model
    check: bool


class Service:
    """The matchers, their queues and their counters."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.catalog = Catalog(settings)
        self.metrics = Metrics(self.catalog)
        self.stopping = False

    def stop(self) -> None:
        """Finish what runs, refuse the rest."""
        self.stopping = True
        self.catalog.close()

    async def match(self, request: Request, model: ServedModel, match_request: MatchRequest) -> MatchResponse:
        """Answer one request; its slot is free again when the response is sent."""
        deadline = asyncio.get_running_loop().time() + self.settings.timeout
        try:
            with ExitStack() as held:
                slot = held.enter_context(model.worker.slot(_retry_after(model)))
                pair = await self._upload(request, deadline)
                self._require_affordable(pair, match_request)
                work = partial(_match, model, pair, match_request, self, time.perf_counter())
                encoded, headers = await self._wait(request, slot, work, deadline)
                self.metrics.responses.labels(200).inc()
                return MatchResponse(encoded, headers, deadline, held.pop_all())
        except ServiceError as error:
            self.metrics.responses.labels(error.status).inc()
            raise
        except ClientDisconnect:
            self.metrics.left_early.inc()
            raise ServiceError(499, "client_left", "The client left.") from None  # nobody reads it

    async def _upload(self, request: Request, deadline: float) -> UploadedPair:
        remaining = deadline - asyncio.get_running_loop().time()
        try:
            return await asyncio.wait_for(read_pair(request, self.settings.max_pixels), remaining)
        except asyncio.TimeoutError:
            message = f"The upload took longer than {self.settings.timeout:g} seconds."
            raise ServiceError(408, "too_slow", message) from None

    def _require_affordable(self, pair: UploadedPair, match_request: MatchRequest) -> None:
        require_possible(match_request.format, pair.calibration is not None, match_request.check)
        pixels = pair.width * pair.height * (match_request.scale or 1.0) ** 2
        if pixels > self.settings.max_pixels:
            limit = f"{self.settings.max_pixels / 1e6:g}"
            message = f"At that scale the images have {pixels / 1e6:.1f} megapixels; {limit} are taken here."
            raise ServiceError(413, "too_many_pixels", message)

    async def _wait(self, request: Request, slot: Slot, work: partial[_Done], deadline: float) -> _Done:
        """Wait for the result, for the client to leave, or for the time to be up."""
        task = slot.submit(work)
        leaves = asyncio.create_task(_until_gone(request))
        try:
            remaining = deadline - asyncio.get_running_loop().time()
            done, _ = await asyncio.wait(
                {task, leaves}, timeout=max(remaining, 0), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            leaves.cancel()
        if task in done:
            if task.cancelled():
                raise stopping(_LONGEST_RETRY)
            return task.result()
        if leaves in done:
            raise ClientDisconnect
        message = f"There was no result within {self.settings.timeout:g} seconds; ask later, or at scale=0.5."
        raise busy("timeout", message, _LONGEST_RETRY)


def affordable_scale(wanted: float, pixels: int, max_pixels: int) -> float:
    """A scale of at least 1 for an image within the limit; a narrow one may be too high to enlarge."""
    return min(wanted, max(math.sqrt(max_pixels / pixels), 1.0))


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _match(
    model: ServedModel, pair: UploadedPair, asked: MatchRequest, service: Service, submitted: float
) -> _Done:
    """The work itself, in the thread of the matcher."""
    moments = [submitted, time.perf_counter()]
    matcher = model.open_range(asked.max_disparity)
    try:
        left, right = pair.decode()
        moments.append(time.perf_counter())
        suits = matcher.spec.hints.scale_for(pair.width)
        scale = asked.scale or affordable_scale(suits, pair.width * pair.height, service.settings.max_pixels)
        result = matcher(left, right, calibration=pair.calibration, scale=scale, check=asked.check)
    except AanetError as error:
        raise unusable("cannot_match", str(error)) from None
    moments.append(time.perf_counter())
    encoded = encode(result, asked.format)
    moments.append(time.perf_counter())
    service.metrics.match_seconds.labels(model.name).observe(result.seconds)
    model.learn_speed(result.seconds, round(pair.width * pair.height * scale**2) * (1 + asked.check))
    spans = [1000 * (after - before) for before, after in pairwise(moments)]
    names = ("queue", "decode", "match", "encode")
    return encoded, {
        "Aanet-Model": model.name,
        "Aanet-Engine": result.engine.encode("ascii", "replace").decode(),
        "Aanet-Warnings": json.dumps(result.warnings),
        "Aanet-Camera": json.dumps(None if result.camera is None else asdict(result.camera)),
        "Server-Timing": ", ".join(f"{n};dur={span:.1f}" for n, span in zip(names, spans, strict=True)),
    }


def _retry_after(model: ServedModel) -> int:
    """Seconds after which a slot will probably be free: one megapixel for everybody who waits."""
    estimate = model.worker.taken * (model.seconds_per_megapixel or 1.0)
    return min(max(math.ceil(estimate), 1), _LONGEST_RETRY)
