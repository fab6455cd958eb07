"""The OpenAPI document, the API page that is made from it, and the index of the API."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse

from aanet.web.documentation import SECURITY_SCHEME, TAGS
from aanet.web.page import PAGE_HEADERS
from aanet.web.paths import API_PREFIX
from aanet.web.reference import operations, page

router = APIRouter(include_in_schema=False)


def document(app: FastAPI, root_path: str = "") -> dict[str, Any]:
    """Return the OpenAPI document of an application that is offered under `root_path`."""
    made = app.openapi()
    for _, _, each in operations(made):
        for parameter in each.get("parameters", []):
            parameter["schema"] = _without_null(parameter["schema"])
    components = made.get("components", {})
    used = {tag for _, _, each in operations(made) for tag in each["tags"]}
    return {
        **made,
        "servers": [{"url": root_path or "/", "description": "This server."}],
        "tags": [tag for tag in TAGS if tag["name"] in used],
        # Described whether or not this server has a token, so that clients made from it can send one.
        "components": {**components, "securitySchemes": {"token": SECURITY_SCHEME}},
    }


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter that may be omitted, but not be null: a query has no null."""
    kinds = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    return {**{name: value for name, value in schema.items() if name != "anyOf"}, **kinds[0]}


def _current(request: Request) -> dict[str, Any]:
    return document(request.app, request.scope.get("root_path", ""))


@router.get(f"{API_PREFIX}/openapi.json")
async def openapi(request: Request) -> Response:
    """Return the OpenAPI document."""
    return JSONResponse(_current(request))


@router.get("/docs")
async def docs(request: Request) -> Response:
    """Return the API page."""
    return HTMLResponse(page(_current(request)), headers=PAGE_HEADERS)


@router.get(API_PREFIX)
@router.get(f"{API_PREFIX}/")
async def index(request: Request) -> Response:
    """Lead a browser to the API page, and tell programs what there is."""
    headers = {"Vary": "Accept"}
    if "text/html" in request.headers.get("accept", ""):
        up = "../../" if request.url.path.endswith("/") else "../"  # relative: proxies may hide a prefix
        return RedirectResponse(f"{up}docs", headers=headers)
    described, root = _current(request), request.scope.get("root_path", "")
    found = {each["operationId"]: f"{method.upper()} {path}" for method, path, each in operations(described)}
    content = {
        "name": described["info"]["title"],
        "version": described["info"]["version"],
        "documentation": f"{root}/docs",
        "openapi": f"{root}{API_PREFIX}/openapi.json",
        "operations": found,
    }
    return JSONResponse(content, headers=headers)
