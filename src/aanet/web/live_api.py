"""The HTTP API of a live session: its state, its newest result, and what the page draws."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import json
import time
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from aanet import outputs
from aanet.errors import AanetError
from aanet.inference.save_options import SaveOptions
from aanet.web.api import Current, refuse_unknown_parameters
from aanet.web.documentation import LIVE, file_response, problems
from aanet.web.errors import refused
from aanet.web.formats import require_known, require_possible
from aanet.web.live import LiveSession, Shown
from aanet.web.live_view import every_output
from aanet.web.matching import Matched
from aanet.web.responses import MatchResponse
from aanet.web.service import Service

WAIT_SECONDS = 5.0  # of a request for the next frame, after which it is answered without one

live = APIRouter(prefix="/live", dependencies=[Depends(refuse_unknown_parameters)])


class LiveStatus(BaseModel):
    """The state of a live session."""

    paused: bool
    problem: str | None = Field(
        description="What is wrong at the moment, such as a camera that is not connected."
    )
    frame: int = Field(description="Number of the newest result.", examples=[120])
    age: float = Field(description="Seconds since the frame of the newest result arrived.", examples=[0.08])
    fps: float | None = Field(description="Results per second.", examples=[12.5])
    source_fps: float | None = Field(description="Frames per second of the source.", examples=[30.0])
    seconds: float = Field(description="Matching time of the newest result.", examples=[0.06])
    warnings: list[str] = Field(description="Warnings about the first pair.")
    color_range: list[float] = Field(
        description="Ends of the color scale in pixels.", min_length=2, max_length=2, examples=[[5, 80]]
    )
    recording: str | None = Field(description="The file that is being written on the server.")
    recorded: str | None = Field(description="The last complete recording.")
    recording_problem: str | None = Field(description="Why the last recording ended by itself.")


def session_of(service: Current) -> LiveSession:
    """The session that the server was started with."""
    assert service.live is not None
    service.live.watch()
    return service.live


Session = Annotated[LiveSession, Depends(session_of)]


@live.get(
    "",
    operation_id="getLiveStatus",
    tags=[LIVE],
    summary="The state of the live source",
    response_description="The state.",
    responses=problems(422),
)
async def status(session: Session) -> LiveStatus:
    """Frames per second, age of the newest result, recording, and what is wrong at the moment."""
    return _status(session, session.shown)


@live.post(
    "",
    operation_id="controlLive",
    tags=[LIVE],
    summary="Pause, continue or record",
    response_description="The new state.",
    responses=problems(403, 422),
)
async def control(
    session: Session,
    paused: Annotated[
        bool | None, Query(description="Whether the newest result stays as it is.", examples=[False])
    ] = None,
    recording: Annotated[
        bool | None,
        Query(description="Whether the frames are written to a file on the server.", examples=[False]),
    ] = None,
) -> LiveStatus:
    """Change what is given, for everybody who watches, and return the new state."""
    if paused is not None:
        session.paused = paused
    if recording is not None:
        await run_in_threadpool(session.record, recording)
    return _status(session, session.shown)


@live.get(
    "/result",
    operation_id="getLiveResult",
    tags=[LIVE],
    summary="The newest result",
    response_class=Response,
    responses={200: file_response(), **problems(422, 500, 503)},
)
async def result(
    service: Current,
    session: Session,
    format: Annotated[  # noqa: A002  # the word that clients write
        str | None,
        Query(
            max_length=100,
            description="As of POST /disparity; if not given, a ZIP file with every output.",
            json_schema_extra={"enum": list(outputs.spellings())},
            examples=["depth.npy"],
        ),
    ] = None,
) -> Response:
    """Return the newest result as a file, or as all files in one archive."""
    shown = session.shown
    if format is None:
        name = f"frame-{shown.number}.zip"
        return await _file(service, partial(_archive, shown, session.saving), "application/zip", name)
    require_known(format)
    found = shown.result
    require_possible(format, found.camera is not None, found.occlusion is not None)
    chosen = outputs.find(format)
    encode = partial(outputs.encode, found, format, session.saving)
    return await _file(service, encode, chosen.type.media_type, chosen.file_name)


@live.get("/view", include_in_schema=False)  # the format belongs to the page, and changes with it
async def view(
    session: Session, after: Annotated[int, Query(description="The version that the page has.")] = 0
) -> Response:
    """Wait for the next version, and return the state and, if it is new, the result.

    The first line is JSON; the JPEG and the maps of `View` follow, `left` and `maps` bytes long. A page asks
    for the next version when it has drawn this one, so that a slow one has fewer frames and not older ones.
    """
    await session.changed(after, WAIT_SECONDS)
    session.watch()
    version, shown = session.newest()
    facts: dict[str, Any] = {"version": version, "live": _status(session, shown).model_dump()}
    body = b""
    if shown.version > after or after == 0:
        drawn, found = await run_in_threadpool(shown.view), shown.result
        height, width = found.disparity.shape
        camera = None if found.camera is None else dataclasses.asdict(found.camera)
        facts |= {"width": width, "height": height, "camera": camera, "step": drawn.step}
        facts |= {"model": found.model, "engine": found.engine, "seconds": found.seconds}
        facts |= {"left": len(drawn.left), "maps": len(drawn.maps)}
        body = drawn.left + drawn.maps
    facts["live"]["age"] = time.monotonic() - shown.captured_at
    return Response(json.dumps(facts).encode() + b"\n" + body, media_type="application/octet-stream")


def _status(session: LiveSession, shown: Shown) -> LiveStatus:
    recorder = session.recorder
    return LiveStatus(
        paused=session.paused,
        problem=session.problem,
        frame=shown.number,
        age=time.monotonic() - shown.captured_at,
        fps=session.fps,
        source_fps=session.source_fps,
        seconds=shown.result.seconds,
        warnings=session.warnings,
        color_range=list(session.color_range),
        recording=recorder.name,
        recorded=recorder.finished,
        recording_problem=recorder.problem,
    )


async def _file(service: Service, encode: Callable[[], bytes], media_type: str, name: str) -> MatchResponse:
    """Encode a file; the number of slots bounds the memory of those that clients do not read."""
    deadline = asyncio.get_running_loop().time() + service.settings.timeout
    with ExitStack() as held:
        slot = held.enter_context(service.encoder.slot(retry_after=1))
        try:
            data = await slot.submit(encode)
        except AanetError as error:
            raise refused("not_in_this_format", error) from None
        file = Matched(data, media_type, name, headers={}, seconds=0.0, pixels=0, spans=())
        return MatchResponse(file, deadline, held.pop_all())


def _archive(shown: Shown, saving: SaveOptions) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, data in every_output(shown.result, saving).items():
            file.writestr(name, data)
    return archive.getvalue()
