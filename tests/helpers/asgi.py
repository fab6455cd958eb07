"""The web application inside the process of a test."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
from fastapi import FastAPI

from aanet.web.app import create_app
from aanet.web.settings import Settings
from helpers.server import as_form

URL = "http://127.0.0.1"
IN_PROCESS = Settings(("sgbm",), isolate=False)  # without a child process, which would take a second to start


def ask(
    app: FastAPI | Settings,
    method: str,
    path: str,
    client: tuple[str, int] = ("127.0.0.1", 123),
    **options: Any,
) -> httpx.Response:
    """Send one request; internal errors become responses, as they do in a server."""
    application = app if isinstance(app, FastAPI) else create_app(app)

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(application, raise_app_exceptions=False, client=client)
        async with httpx.AsyncClient(transport=transport, base_url=URL, trust_env=False) as sender:
            return await sender.request(method, path, **options)

    return asyncio.run(send())


def post(app: FastAPI | Settings, files: dict[str, bytes], **options: Any) -> httpx.Response:
    """Match a pair."""
    return ask(app, "POST", "/api/v1/disparity", files=as_form(files), **options)
