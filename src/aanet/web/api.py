"""The HTTP API: what clients see of the service."""

from __future__ import annotations

import asyncio
import hmac
from typing import Annotated, Literal, cast

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from aanet import outputs
from aanet.errors import did_you_mean
from aanet.inference.hints import MAX_UPSCALE
from aanet.inference.options import MIN_SCALE
from aanet.web.documentation import (
    MATCHING,
    OPERATION,
    REQUEST_BODY,
    SECURITY_SCHEME,
    ModelFacts,
    ModelList,
    Status,
    problems,
    responses,
)
from aanet.web.errors import ServiceError, stopping, unusable
from aanet.web.formats import require_known, save_options
from aanet.web.matching import MatchRequest
from aanet.web.service import Service
from aanet.web.uploads import CalibrationOptions

MAX_DISPARITY = 1024  # of a request; memory grows with it
_WRONG_TOKEN_SECONDS = 0.2
_METRICS_TYPE = "text/plain; version=1.0.0; charset=utf-8"
_BEARER = HTTPBearer(scheme_name="token", description=SECURITY_SCHEME["description"], auto_error=False)


def _listed(phrases: list[str]) -> str:
    """A list in Markdown of phrases that begin with a name."""
    return "\n".join(f"- `{phrase.replace(' ', '` ', 1)}" for phrase in phrases)


async def refuse_unknown_parameters(request: Request) -> None:
    """Refuse query parameters that the operation does not have, because they are probably misspelled."""
    known = [field.alias for field in cast(APIRoute, request.scope["route"]).dependant.query_params]
    for name in request.query_params:
        if name not in known:
            listed = f"known: {', '.join(known)}" if known else "there are none"
            message = f"There is no parameter {name[:80]!r}{did_you_mean(name, known)}; {listed}."
            raise unusable("unknown_parameter", message)


api = APIRouter(dependencies=[Depends(refuse_unknown_parameters)])  # requires the token, if there is one
probes = APIRouter()  # no token: they reveal nothing about anyone's data


def service_of(request: Request) -> Service:
    """The service that the application was made for."""
    return cast(Service, request.app.state.service)


Current = Annotated[Service, Depends(service_of)]


async def require_token(
    service: Current,
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)],
) -> None:
    """Refuse a request without the token; wrong tokens are answered slowly, one after the other."""
    token = (service.settings.token or "").encode()
    # The bytes of a header are UTF-8, which the framework decodes as Latin-1.
    if given is None or not hmac.compare_digest(given.credentials.encode("latin-1"), token):
        if given is not None:
            async with service.wrong_token:
                await asyncio.sleep(_WRONG_TOKEN_SECONDS)
        message = "This server wants a token (Authorization: Bearer …)."
        raise ServiceError(401, "unauthorized", message, {"WWW-Authenticate": "Bearer"})


@api.post(
    "/disparity",
    operation_id="matchPair",
    tags=[MATCHING],
    summary="Match a pair",
    response_class=Response,
    responses=responses(),
    openapi_extra={"requestBody": REQUEST_BODY},
)
async def disparity(
    request: Request,
    service: Current,
    model: Annotated[
        str | None,
        Query(
            max_length=100,
            description="A name from GET /models; the default one if not given.",
            examples=["sgbm"],
        ),
    ] = None,
    format: Annotated[  # noqa: A002  # the word that clients write
        str,
        Query(
            max_length=100,
            description="What to answer, with a suffix for another file format than the first, as in "
            f"`disparity.pfm`:\n\n{_listed(outputs.describe('calib', 'check=true'))}",
            json_schema_extra={"enum": list(outputs.spellings())},
            examples=["disparity.pfm"],
        ),
    ] = "disparity",
    max_disparity: Annotated[
        int | None,
        Query(
            ge=1,
            le=MAX_DISPARITY,
            description="Pixels to search; the model's own if not given.",
            examples=[192],
        ),
    ] = None,
    scale: Annotated[
        float | None,
        Query(
            ge=MIN_SCALE,
            le=4,
            description="Factor by which the images are resized before matching; 0.5 doubles the range. "
            "As suits the model if not given.",
            examples=[1.0],
        ),
    ] = None,
    check: Annotated[
        bool, Query(description="Also match right to left and mark what does not agree.", examples=[False])
    ] = False,
    unit: Annotated[
        Literal["mm", "cm", "m"] | None,
        Query(description="Unit of the lengths in the calibration; meters if not given.", examples=["m"]),
    ] = None,
    rectified: Annotated[
        bool,
        Query(
            description="The images are already rectified; for calibrations that describe raw images too.",
            examples=[False],
        ),
    ] = False,
    resized: Annotated[
        bool,
        Query(
            description="The images may have been resized, but not cropped, since the calibration.",
            examples=[False],
        ),
    ] = False,
    min_confidence: Annotated[
        float, Query(ge=0, le=1, description="Omit depths and points of lower confidence.", examples=[0.5])
    ] = 0.0,
    max_depth: Annotated[
        float | None,
        Query(gt=0, description="Omit depths and points farther away, in meters.", examples=[20]),
    ] = None,
    flying_pixels: Annotated[
        bool, Query(description="Keep points at edges, between two surfaces.", examples=[False])
    ] = False,
    range: Annotated[  # noqa: A002  # the word that clients write
        str | None,
        Query(
            max_length=40,
            description="Range of the colors: LOW:HIGH in pixels, or in meters as in 0.5:10m; that of the "
            "picture if not given.",
            examples=["5:80"],
        ),
    ] = None,
) -> Response:
    """Find the disparity of every pixel of the left image.

    The response is the file itself; warnings about the pair and timing are in its headers.
    """
    require_known(format)
    calibration = CalibrationOptions(unit, rectified, resized)
    shown = {"min_confidence": min_confidence, "max_depth": max_depth, "flying_pixels": flying_pixels}
    saving = save_options({**shown, "range": range})
    match_request = MatchRequest(format, max_disparity, scale, check, calibration, saving)
    return await service.match(request, service.catalog.find(model), match_request)


@api.get(
    "/models",
    operation_id="listModels",
    tags=[MATCHING],
    summary="List the matchers and the limits",
    response_description="The matchers and the limits.",
    responses=problems(422),
)
async def models(service: Current) -> ModelList:
    """Matchers that this server offers, how busy they are, and what it accepts."""
    settings, default = service.settings, service.catalog.default
    described = [
        ModelFacts(
            name=model.name,
            default=model is default,
            max_disparity=None if model.facts is None else model.facts.max_disparity,
            upscale_to=0 if model.facts is None else model.facts.upscale_to,
            max_upscale=MAX_UPSCALE,
            engine=None if model.facts is None else model.facts.engine,
            seconds_per_megapixel=model.seconds_per_megapixel,
            taken=model.worker.taken,
            slots=model.worker.slots,
        )
        for model in service.catalog
    ]
    return ModelList(
        models=described,
        max_pixels=settings.max_pixels,
        max_upload_bytes=settings.max_upload_bytes,
        timeout=settings.timeout,
        live=service.live is not None,
    )


@api.get(
    "/metrics",
    operation_id="getMetrics",
    tags=[OPERATION],
    summary="Counters for Prometheus",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The counters."},
        **problems(422),
    },
)
async def metrics(service: Current) -> Response:
    """Responses by status, time in the matchers, slots taken, memory of the process."""
    return Response(service.metrics.text(), media_type=_METRICS_TYPE)


@probes.get(
    "/healthz",
    operation_id="getHealth",
    tags=[OPERATION],
    summary="Is the process alive?",
    response_description="It is.",
)
async def healthz() -> Status:
    """Answers as long as the server answers anything."""
    return Status(status="ok")


@probes.get(
    "/readyz",
    operation_id="getReadiness",
    tags=[OPERATION],
    summary="Does it take work?",
    response_description="It takes work.",
    responses=problems(503),
)
async def readyz(service: Current) -> Status:
    """Answers 200 while new work is taken, 503 when the server is stopping."""
    if service.stopping:
        raise stopping()
    return Status(status="ready")
