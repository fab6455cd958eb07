"""`aanet benchmark`: time and memory of the networks, beside the paper's figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aanet.cli import measurements, on_ray
from aanet.cli.on_ray import RayAddress
from aanet.cli.options import ImageHeight, ImageWidth, JsonOutput, Overwrite, refuse_existing
from aanet.engines.table import ENGINES, network_engines
from aanet.errors import InputError
from aanet.models.weights import files

SERVER = "Load test of the server"


def benchmark(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            help="Networks, weight files or sgbm. NAME=MODEL gives a name for the table.",
            show_default="aanet aanet_plus stereonet_aa",
        ),
    ] = None,
    engines: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help=f"Comma-separated engines: baseline, {', '.join(network_engines())}, or one of the latter "
            "followed by -bf16.",
        ),
    ] = "baseline,torch,openvino",
    height: ImageHeight = 576,
    width: ImageWidth = 960,
    rounds: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of timed predictions per network and engine.")
    ] = 5,
    memory: Annotated[
        bool, typer.Option(help="Measure the peak memory of each network, in a separate process.")
    ] = True,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="paper|scaling",
            help="paper: the eight networks of the paper's table 2, with torch, at the largest size that "
            "fits into memory. scaling: one network at several image sizes and disparity ranges.",
        ),
    ] = None,
    training_step: Annotated[
        bool,
        typer.Option(
            "--training-step", help="Time training steps (crop 144×336, batch 2) instead of predictions."
        ),
    ] = False,
    accuracy: Annotated[
        str | None,
        typer.Option(
            metavar="motorcycle|DATASET=FOLDER",
            help="Measure error against time on these pairs: the sample pair of the package, or a dataset "
            "with ground truth. Models are bundled models, weight files, exported files or sgbm.",
        ),
    ] = None,
    scales: Annotated[
        str, typer.Option(metavar="FACTORS", help="Comma-separated scales for --accuracy.")
    ] = "0.5,0.75,1,auto",
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Maximum number of pairs for --accuracy.", show_default="all"),
    ] = None,
    serve: Annotated[
        bool,
        typer.Option(
            "--serve",
            help="Start `aanet serve` with one model on this machine and measure it under load.",
            rich_help_panel=SERVER,
        ),
    ] = False,
    clients: Annotated[
        str,
        typer.Option(
            metavar="NUMBERS", help="Comma-separated numbers of clients, at most 250.", rich_help_panel=SERVER
        ),
    ] = "1,16,64,200",
    seconds: Annotated[
        float,
        typer.Option(
            metavar="N", min=0.5, max=600, help="Seconds per number of clients.", rich_help_panel=SERVER
        ),
    ] = 10.0,
    soak: Annotated[
        float | None,
        typer.Option(
            metavar="MINUTES",
            min=0.01,
            max=600,
            help="Instead, let 16 clients ask for this long; fails if the memory grows by more than 5 %.",
            rich_help_panel=SERVER,
        ),
    ] = None,
    ray: RayAddress = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="Also write report.md, report.json and chart.png here."
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: JsonOutput = False,
) -> None:
    """Measure time and memory of the networks.

    The runs are interleaved, and the results are shown beside the figures of the paper. The engine baseline
    computes as the published code does on a CPU: NCHW tensors, a loop over the disparity candidates, and
    deformable convolution by grid_sample. Networks have random weights, which do not affect the speed.

    With --serve, a server is measured instead: matched and refused requests, latency, probes and memory at
    several numbers of clients.

    With --ray, `aanet predict` is measured without Ray, with one worker and with two, on eight pairs per
    round and with one thread each. A second table computes what a million pairs cost on 1, 10 and 100 hosts.

    Example: aanet benchmark aanet stereonet_aa --height 480 --width 640
    """
    report, picture = (output / "report.md", output / "chart.png") if output else (None, None)
    if output is not None:
        refuse_existing(overwrite, output / "report.md", output / "report.json", output / "chart.png")
    if serve:
        measurements.load_server(
            (models or [files.DEFAULT])[0], (height, width), clients, seconds, soak, as_json, report
        )
        return
    if ray is not None:
        on_ray.compare((models or [files.DEFAULT])[0], (height, width), 8 * rounds, ray, as_json, report)
        return
    from aanet.engines.bf16_support import bf16_support

    # Broken AMX can only be disabled before the libraries are imported.
    for name, card in ENGINES.items():
        asked = f"{name}-bf16" in engines.split(",") or (training_step and name == "torch")
        if asked and card.bf16 is not None:
            bf16_support(card.bf16)
    if accuracy is not None:
        measurements.plot_error_against_time(
            models, accuracy, scales, limit, rounds, as_json, report, picture
        )
    elif training_step:
        measurements.time_training_steps(models or ["aanet"], rounds, as_json)
    elif preset == "scaling":
        measurements.time_sizes(
            (models or ["aanet"])[0], engines.split(",")[-1], rounds, as_json, report, picture
        )
    elif preset == "paper":
        from aanet.benchmark import comparison
        from aanet.benchmark.presets import largest_common_size, paper_networks

        names = models or paper_networks()
        for name in names:
            if name not in paper_networks():
                raise InputError(
                    f"{name} is not in the paper's table; there are: {', '.join(paper_networks())}."
                )
        size = largest_common_size()
        measurements.time_predictions(
            names, ["torch"], size, rounds, memory, as_json, report, picture, comparison
        )
    elif preset is None:
        from aanet.benchmark import report as by_engine
        from aanet.benchmark.presets import DEFAULT_NETWORKS

        names = models or list(DEFAULT_NETWORKS)
        size = (height, width)
        measurements.time_predictions(
            names, engines.split(","), size, rounds, memory, as_json, report, picture, by_engine
        )
    else:
        raise InputError(f"The presets are 'paper' and 'scaling', not {preset!r}.")
