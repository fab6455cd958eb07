"""The web page: its static files and the example pair."""

from __future__ import annotations

import mimetypes
from functools import lru_cache
from pathlib import Path

import numpy as np
from fastapi import APIRouter, FastAPI, Response
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from aanet.web.errors import ServiceError

STATIC = Path(__file__).resolve().parent / "static"
PAGE_HEADERS = {"Cache-Control": "no-cache"}  # cached, but revalidated, so that updates show at once

# The registry of Windows may map .js to another type, with which browsers refuse to run modules.
mimetypes.add_type("text/javascript", ".js")

router = APIRouter(include_in_schema=False)


def add_page(app: FastAPI) -> None:
    """Serve the page at `/`."""
    app.include_router(router)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")


@router.get("/")
async def index() -> Response:
    """Return the page."""
    return FileResponse(STATIC / "index.html", headers=PAGE_HEADERS)


@router.get("/favicon.ico")
async def favicon() -> Response:
    """Return the icon, which browsers request at this path regardless of the page."""
    return FileResponse(STATIC / "icon.svg", headers=PAGE_HEADERS)


@router.get("/page/colors.json")
def colors() -> list[list[int]]:
    """Return the 256 colors of disparity images, so that the page uses the same as the files."""
    from aanet.viz import colorize_disparity

    ramp = np.arange(256, dtype=np.float32)[None]
    listed: list[list[int]] = colorize_disparity(ramp, 0, 255)[0].tolist()
    return listed


@router.get("/page/motorcycle/{file}")
def motorcycle(file: str) -> Response:
    """Return a file of the example: the Motorcycle pair of Middlebury 2014 with its calibration."""
    files = _motorcycle_files()
    if file not in files:
        raise ServiceError(404, "not_found", "The example has left.png, right.png and calib.json.")
    media_type = "image/png" if file.endswith(".png") else "application/json"
    return Response(files[file], media_type=media_type, headers=PAGE_HEADERS)


@lru_cache(maxsize=1)
def _motorcycle_files() -> dict[str, bytes]:
    from aanet.data.motorcycle import MOTORCYCLE_CAMERA, motorcycle
    from aanet.io.images import encode_image

    sample = motorcycle()
    return {
        "left.png": encode_image(sample.left, ".png"),
        "right.png": encode_image(sample.right, ".png"),
        "calib.json": MOTORCYCLE_CAMERA.to_json().encode(),
    }
