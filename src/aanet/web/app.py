"""The ASGI application: API, page and limits."""

from __future__ import annotations

import logging

from fastapi import Depends, FastAPI
from starlette.datastructures import QueryParams
from starlette.types import Scope

from aanet.version import __version__
from aanet.web import documentation, openapi
from aanet.web.access import Access
from aanet.web.api import api, metrics, probes, require_token
from aanet.web.errors import add_error_handlers
from aanet.web.limits import Gate, UploadLimit
from aanet.web.live import LiveSession
from aanet.web.live_api import live as live_api
from aanet.web.matching import StartMatching
from aanet.web.page import add_page
from aanet.web.paths import API_PREFIX, route_path
from aanet.web.service import Service
from aanet.web.settings import Settings


def create_app(
    settings: Settings, live: LiveSession | None = None, start: StartMatching | None = None
) -> FastAPI:
    """Create an application with its own matchers.

    Args:
        settings: Models, access control and limits.
        live: A live session, whose frames the application shows.
        start: Where pairs are matched; None for child processes, or as `settings.isolate` says.
    """
    app = FastAPI(
        title="aanet",
        summary="Stereo matching over HTTP",
        description=documentation.DESCRIPTION,
        version=__version__,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        openapi_url=None,  # FastAPI's own pages about it load scripts from other servers
        redirect_slashes=False,
    )
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # strangers must not fill the log
    app.state.service = service = Service(settings, live, start)
    guard = [Depends(require_token)] if settings.token else []
    refusals = documentation.problems(401) if settings.token else {}
    app.include_router(api, prefix=API_PREFIX, dependencies=guard, responses=refusals)
    if live is not None:
        app.include_router(live_api, prefix=API_PREFIX, dependencies=guard, responses=refusals)
    app.include_router(probes, prefix=API_PREFIX)
    app.include_router(probes, include_in_schema=False)
    app.add_api_route("/metrics", metrics, dependencies=guard, include_in_schema=False)
    app.include_router(openapi.router)
    add_page(app)
    add_error_handlers(app)
    app.add_middleware(UploadLimit, max_bytes=settings.max_upload_bytes)

    def refuse_if_full(scope: Scope) -> None:
        if scope["method"] == "POST" and route_path(scope) == f"{API_PREFIX}/disparity":
            service.refuse_if_full(QueryParams(scope["query_string"]).get("model"))

    app.add_middleware(
        Gate,
        metrics=service.metrics,
        access=Access(settings),
        root_path=settings.root_path,
        refuse_early=refuse_if_full,
    )
    return app
