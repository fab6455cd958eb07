"""Processing of a request within a deadline: slot, upload, queue, matching and response."""

from __future__ import annotations

import asyncio
import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

from fastapi import Request
from starlette.requests import ClientDisconnect

from aanet.web.errors import ServiceError, busy, stopping
from aanet.web.formats import require_possible
from aanet.web.forms import read_form
from aanet.web.live import LiveSession
from aanet.web.matching import Matched, MatchRequest, StartMatching
from aanet.web.metrics import DISCONNECTED, Metrics
from aanet.web.models import Catalog, ServedModel
from aanet.web.responses import MatchResponse
from aanet.web.settings import Settings
from aanet.web.uploads import PARTS, CalibrationOptions, UploadedPair, read_pair, require_side
from aanet.web.workers import Slot, Worker

_FILES_AT_ONCE = 4  # of a live session


class Service:
    """The matchers with their queues and metrics, and the live session if there is one."""

    def __init__(
        self, settings: Settings, live: LiveSession | None = None, start: StartMatching | None = None
    ) -> None:
        self.settings = settings
        self.live = live
        self.encoder = Worker(_FILES_AT_ONCE - 1)  # for files of the live session
        self.catalog = Catalog(settings, start)
        self.metrics = Metrics(self.catalog)
        self.stopping = False
        self.wrong_token = asyncio.Lock()  # held while a wrong token is answered
        # Not the thread of a matcher, so that a wrong upload is refused before its turn.
        self._reader = ThreadPoolExecutor(1, "uploads")
        self._uploads: set[asyncio.Task[UploadedPair]] = set()

    def stop(self) -> None:
        """Finish running requests and refuse all others."""
        self.stopping = True
        for upload in self._uploads:
            upload.cancel()
        self.catalog.stop()
        self.encoder.close()
        if self.live is not None:
            self.live.stop()

    def close(self) -> None:
        """End the live session and all child processes."""
        if self.live is not None:
            self.live.close()
        self.catalog.close()

    def refuse_if_full(self, name: str | None) -> None:
        """Raise the error that `match` would raise for a model of this name without a free slot.

        Nothing else is checked or revealed: the token of the client has not been looked at yet.
        """
        if name is None or name in self.catalog:
            model = self.catalog.find(name)
            model.worker.require_free(model.retry_after)

    async def match(self, request: Request, model: ServedModel, match_request: MatchRequest) -> MatchResponse:
        """Process a request; its slot is released when the response has been sent."""
        deadline = asyncio.get_running_loop().time() + self.settings.timeout
        try:
            with ExitStack() as held:
                slot = held.enter_context(model.worker.slot(model.retry_after))
                pair = await self._upload(request, deadline, match_request.calibration)
                self._check_limits(pair, match_request)
                work = partial(model.match, pair, match_request, deadline, time.perf_counter())
                matched = await self._wait(request, slot, work, deadline, model)
                self.metrics.match_seconds.labels(model.name).observe(matched.seconds)
                return MatchResponse(matched, deadline, held.pop_all())
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

        upload = asyncio.create_task(read())
        self._uploads.add(upload)
        try:
            return await asyncio.wait_for(upload, remaining)
        except TimeoutError:
            message = f"The upload took longer than {self.settings.timeout:g} seconds."
            raise ServiceError(408, "too_slow", message) from None
        except asyncio.CancelledError:
            if self.stopping:
                raise stopping() from None
            raise
        finally:
            self._uploads.discard(upload)

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
        self, request: Request, slot: Slot, work: partial[Matched], deadline: float, model: ServedModel
    ) -> Matched:
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
                raise stopping()
            with contextlib.suppress(TimeoutError):  # the matcher was stopped at the same moment
                return task.result()
        if disconnect in done:
            raise ClientDisconnect
        message = f"No result within {self.settings.timeout:g} seconds; retry later or at scale=0.5."
        raise busy("timeout", message, model.retry_after)


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
