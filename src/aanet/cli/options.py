"""Arguments and options that several commands share, so that one thing has one name everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aanet.data.datasets import DATASETS
from aanet.engines.table import network_engines
from aanet.errors import WriteError

# Titles under which the help groups options.
MATCHING, COMPUTATION, DISPLAY, VIDEO = "Matching", "Computation", "Depth, points and colors", "Video"
ANY_MODEL = "A bundled model, a weight file, a network file (.onnx, .xml, .pb), sgbm or cross-scale."


def _complete_dataset(incomplete: str) -> list[str]:
    return [name for name in DATASETS if name.startswith(incomplete)]


Dataset = Annotated[
    str,
    typer.Argument(
        help=f"The dataset: {' or '.join(', '.join(DATASETS).rsplit(', ', 1))}.",
        autocompletion=_complete_dataset,
    ),
]
Root = Annotated[Path, typer.Argument(help="The folder of the dataset.")]
Split = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Split of the dataset.", show_default="the dataset's first"),
]
DatasetOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set an option of the dataset, such as render=cleanpass. May be repeated.",
    ),
]

ImageHeight = Annotated[int, typer.Option("--height", metavar="N", min=1, help="Image height in pixels.")]
ImageWidth = Annotated[int, typer.Option("--width", metavar="N", min=1, help="Image width in pixels.")]

Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Random seed of the scenes.")]
SceneDisparity = Annotated[
    int, typer.Option("--max-disparity", metavar="N", help="Upper limit of all disparities, in pixels.")
]
Textures = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder of photographs to use as textures.",
        show_default="generated textures",
    ),
]

MaxDisparity = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Search disparities below this number of pixels.",
        show_default="as the model was trained",
        rich_help_panel=MATCHING,
    ),
]
Scale = Annotated[
    float | None,
    typer.Option(
        metavar="FACTOR",
        help="Resize the images by this factor before matching. A factor of 0.5 doubles the disparity "
        "range and is faster.",
        show_default="as recommended for the model",
        rich_help_panel=MATCHING,
    ),
]
Tile = Annotated[
    str,
    typer.Option(
        metavar="auto|none|HxW",
        help="Size of the tiles that the network processes one by one; auto uses tiles only if memory "
        "requires them.",
        rich_help_panel=MATCHING,
    ),
]
Postprocess = Annotated[
    str,
    typer.Option(
        metavar="auto|all|none",
        help="all: sharpen blurred edges and fill regions that only the left camera sees. none: the raw "
        "prediction. auto: as recommended for the model.",
        rich_help_panel=MATCHING,
    ),
]
NetworkSpec = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|NAME",
        help="How to feed and read a network file that another program wrote: a TOML file, or the name of a "
        "ready-made spec; see aanet inspect.",
        show_default="the TOML file beside it, or found by trying",
        rich_help_panel=MATCHING,
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(network_engines()),
        help="Inference engine.",
        show_default="the fastest that is installed",
        rich_help_panel=COMPUTATION,
    ),
]
Precision = Annotated[
    str,
    typer.Option(
        metavar="auto|float32|bf16",
        help="Numeric precision; auto uses bf16 if it is faster on this machine and changes disparities "
        "by less than 0.02 pixels.",
        rich_help_panel=COMPUTATION,
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Device of the engine torch, such as cpu or cuda.",
        show_default="cuda if available, else cpu",
        rich_help_panel=COMPUTATION,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Number of CPU threads.",
        show_default="one per core",
        rich_help_panel=COMPUTATION,
    ),
]

MinConfidence = Annotated[
    float,
    typer.Option(
        metavar="0…1",
        help="Omit depths and points of lower confidence.",
        rich_help_panel=DISPLAY,
    ),
]
MaxDepth = Annotated[
    float | None,
    typer.Option(
        metavar="METERS",
        help="Omit depths and points that are farther away.",
        show_default="no limit",
        rich_help_panel=DISPLAY,
    ),
]
FlyingPixels = Annotated[
    bool,
    typer.Option(
        "--flying-pixels",
        help="Keep points at edges whose disparity lies between two surfaces.",
        rich_help_panel=DISPLAY,
    ),
]
ColorScale = Annotated[
    str,
    typer.Option(
        "--range",
        metavar="auto|each|all|LOW:HIGH",
        help="Range of the colors: LOW:HIGH in pixels, or in meters as in 0.5:10m; each: that of each "
        "picture; all: one for all pictures, from a sample of them; auto: all for the frames of a video, "
        "each for still pairs.",
        rich_help_panel=DISPLAY,
    ),
]
Temporal = Annotated[
    float | None,
    typer.Option(
        metavar="WEIGHT",
        help="Average the disparities of a video along time, except where something moves; the weight of the "
        "new frame, such as 0.4.",
        show_default="no average",
        rich_help_panel=VIDEO,
    ),
]
Frames = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="End after this number of frames or pairs.",
        show_default="all",
        rich_help_panel=VIDEO,
    ),
]
Fps = Annotated[
    float | None,
    typer.Option(
        metavar="RATE",
        min=0.01,
        max=1000,
        help="Frames per second of videos that are written.",
        show_default="those of the source, or 10",
        rich_help_panel=VIDEO,
    ),
]

LOCALHOST = "127.0.0.1"
Host = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        help="Address to listen on. Any address but the local host requires --token.",
    ),
]
Port = Annotated[
    int, typer.Option(metavar="N", min=0, max=65535, help="Port to listen on; 0 selects a free one.")
]
Token = Annotated[
    str | None,
    typer.Option(
        metavar="TOKEN",
        envvar="AANET_TOKEN",
        help="Require this token in every request (Authorization: Bearer TOKEN).",
    ),
]

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace output files that already exist.")]
JsonOutput = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def refuse_existing(overwrite: bool, *files: Path) -> None:
    """Raise an error if an output file already exists and must not be replaced; call it before any work."""
    for file in files:
        if file.exists() and not overwrite:
            raise WriteError(f"{file} already exists; choose another output, or add --overwrite.")
