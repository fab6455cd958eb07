"""`aanet live`: depth of a camera, stream or video while one watches."""

from __future__ import annotations

import contextlib
import math
import re
from pathlib import Path
from typing import Annotated

import typer

from aanet.cli.calibration import Calib, CalibRight, Rectified, Resized, Unit, open_calibration
from aanet.cli.console import status
from aanet.cli.matching import MatcherOptions, match_options
from aanet.cli.options import (
    ANY_MODEL,
    DISPLAY,
    LOCALHOST,
    MATCHING,
    Device,
    Engine,
    FlyingPixels,
    Host,
    MaxDepth,
    MaxDisparity,
    MinConfidence,
    NetworkSpec,
    Port,
    Postprocess,
    Precision,
    Scale,
    Temporal,
    Threads,
    Token,
)
from aanet.cli.serve import announce, is_local
from aanet.errors import InputError


def live(
    left: Annotated[
        str,
        typer.Argument(
            help="Left camera (0, 1 … or /dev/video0), video or network stream (rtsp://…). Without a right "
            "side: one with both views side by side, the left one first."
        ),
    ],
    right: Annotated[
        str | None, typer.Argument(help="Right camera, video or stream.", show_default=False)
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            metavar="WIDTHxHEIGHT",
            help="Size of the frames of a camera, as in 2560x720; of both views if they are side by side.",
            show_default="640x480",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for recordings.")
    ] = Path("out"),
    model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help=ANY_MODEL, show_default="aanet", rich_help_panel=MATCHING),
    ] = None,
    network_spec: NetworkSpec = None,
    max_disparity: MaxDisparity = None,
    scale: Scale = None,
    postprocess: Postprocess = "auto",
    temporal: Temporal = None,
    colors: Annotated[
        str | None,
        typer.Option(
            "--range",
            metavar="LOW:HIGH",
            help="Range of the colors in pixels, or in meters as in 0.5:10m; it can be changed on the page.",
            show_default="that of the first frame, widened",
            rich_help_panel=DISPLAY,
        ),
    ] = None,
    min_confidence: MinConfidence = 0.0,
    max_depth: MaxDepth = None,
    flying_pixels: FlyingPixels = False,
    calib: Calib = None,
    calib_right: CalibRight = None,
    unit: Unit = None,
    rectified: Rectified = False,
    resized: Resized = False,
    host: Host = LOCALHOST,
    port: Port = 8000,
    token: Token = None,
    engine: Engine = None,
    precision: Precision = "auto",
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Show the depth of a camera, network stream or video in the browser while you watch.

    The page shows the newest frame, its disparity or depth, and the points in 3D. The server, its address and
    its access control are those of aanet serve.

    Example: aanet live 0 --size 2560x720 --calib rig.yml --model sgbm
    """
    local, camera_size = is_local(host, token), _size(size)
    from aanet.inference.save_options import SaveOptions
    from aanet.inference.temporal import TemporalFilter
    from aanet.io.frames import StereoVideo
    from aanet.web.live import LiveOptions, LiveSession
    from aanet.web.server import run
    from aanet.web.settings import Settings

    opening = MatcherOptions(engine, precision, max_disparity, device, threads, network_spec)
    if temporal is not None:
        TemporalFilter(temporal)  # a wrong weight is refused before anything is opened
    options = LiveOptions(
        calibration=open_calibration(calib, calib_right, unit, rectified, resized),
        matching=match_options(scale, postprocess=postprocess),
        temporal=temporal,
        saving=SaveOptions(
            min_confidence, math.inf if max_depth is None else max_depth, flying_pixels, colors
        ),
        folder=output,
    )

    opened: list[StereoVideo] = []

    def open_source() -> StereoVideo:
        return opened.pop() if opened else StereoVideo(left, right, camera_size=camera_size)

    def open_live() -> LiveSession:
        opened.append(open_source())  # before the model, which takes longer to open
        frame = next(opened[0].sample(1))
        if options.calibration is not None:
            options.calibration.for_size(frame.left.shape[1], frame.left.shape[0])
        with status("Opening the model; the first time, it is converted"):
            return LiveSession(opening.open(model), open_source, options)

    settings = Settings(
        models=() if model is None else (model,),
        network_spec=network_spec,
        token=token or None,
        local=local,
        open_at_once=False,
    )
    with contextlib.suppress(KeyboardInterrupt):
        run(settings, host, port, lambda address: announce(address, token), open_live)


def _size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,5})x(\d{1,5})", text)
    if match is None:
        raise InputError(f"--size is WIDTHxHEIGHT, as in 2560x720; got {text[:30]!r}.")
    return int(match[1]), int(match[2])
