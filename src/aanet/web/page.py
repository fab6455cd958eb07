"""The page: our own files, and the pair that is always at hand."""

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
_PAGE_HEADERS = {"Cache-Control": "no-cache"}  # kept, but asked for again: a new version shows at once

# Windows may know .js by another type, and browsers run no module of another type.
mimetypes.add_type("text/javascript", ".js")

router = APIRouter(include_in_schema=False)


def add_page(app: FastAPI) -> None:
    """Serve the page at `/`."""
    app.include_router(router)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")


@router.get("/")
async def index() -> Response:
    """The page itself."""
    return FileResponse(STATIC / "index.html", headers=_PAGE_HEADERS)


@router.get("/favicon.ico")
async def favicon() -> Response:
    """Browsers ask for it whatever the page says."""
    return FileResponse(STATIC / "icon.svg", headers=_PAGE_HEADERS)


@router.get("/page/colors.json")
def colors() -> list[list[int]]:
    """The 256 colors of the disparity pictures, so that the page has the same as the files."""
    from aanet.viz import colorize_disparity

    ramp = np.arange(256, dtype=np.float32)[None]
    listed: list[list[int]] = colorize_disparity(ramp, 0, 255)[0].tolist()
    return listed


@router.get("/page/motorcycle/{file}")
def motorcycle(file: str) -> Response:
    """The Motorcycle pair of Middlebury 2014 with its camera, as files that a person might have."""
    files = _motorcycle_files()
    if file not in files:
        raise ServiceError(404, "not_found", "The example has left.png, right.png and calib.json.")
    media_type = "image/png" if file.endswith(".png") else "application/json"
    return Response(files[file], media_type=media_type, headers=_PAGE_HEADERS)


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
