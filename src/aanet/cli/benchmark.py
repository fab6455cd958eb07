"""`aanet benchmark`: time and memory of the networks, beside the paper's figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from aanet.cli import measurements, on_ray
from aanet.cli.matching import MatcherOptions, match_options
from aanet.cli.on_ray import RayAddress
from aanet.cli.options import (
    DatasetOptions,
    Device,
    ImageHeight,
    ImageWidth,
    JsonOutput,
    MaxDisparity,
    NetworkSpec,
    Overwrite,
    Postprocess,
    Precision,
    Threads,
    Tile,
    refuse_existing,
)
from aanet.engines.table import ENGINES, network_engines
from aanet.errors import InputError
from aanet.models.weights import files

ACCURACY, SERVER = "Error against time", "Load test of the server"


def benchmark(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            help="Networks, weight files, network files (.onnx, .xml, .pb), sgbm or cross-scale. NAME=MODEL "
            "gives a name for the table.",
            show_default="aanet aanet_plus stereonet_aa",
        ),
    ] = None,
    engines: Annotated[
        str | None,
        typer.Option(
            "--engines",
            "--engine",
            metavar="NAMES",
            help=f"Comma-separated engines: baseline, {', '.join(network_engines())}, or one of the latter "
            "followed by -bf16. With --accuracy, one engine for all networks.",
            show_default="baseline,torch,openvino; with --accuracy, the fastest that is installed",
        ),
    ] = None,
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
            "with ground truth. Models are bundled models, weight files, network files, sgbm or cross-scale.",
            rich_help_panel=ACCURACY,
        ),
    ] = None,
    scales: Annotated[
        str, typer.Option(metavar="FACTORS", help="Comma-separated scales.", rich_help_panel=ACCURACY)
    ] = "0.5,0.75,1,auto",
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Maximum number of pairs, evenly spaced over the split.",
            show_default="all",
            rich_help_panel=ACCURACY,
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Split of the dataset.",
            show_default="the benchmark's own",
            rich_help_panel=ACCURACY,
        ),
    ] = None,
    option: DatasetOptions = None,
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
    network_spec: NetworkSpec = None,
    max_disparity: MaxDisparity = None,
    tile: Tile = "auto",
    postprocess: Postprocess = "auto",
    precision: Precision = "auto",
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Measure time and memory of the networks.

    The runs are interleaved, and the results are shown beside the figures of the paper. The engine baseline
    computes as the published code does on a CPU: NCHW tensors, a loop over the disparity candidates, and
    deformable convolution by grid_sample. Networks have random weights, which do not affect the speed.

    With --accuracy, errors are measured as well: every model at every scale, with its weights, interleaved.
    With --serve, a server is measured instead: matched and refused requests, latency, probes and memory at
    several numbers of clients.

    With --ray, `aanet predict` is measured without Ray, with one worker and with two, on eight pairs per
    round and with one thread each. A second table computes what a million pairs cost on 1, 10 and 100 hosts.

    Example: aanet benchmark aanet stereonet_aa --height 480 --width 640
    """
    report, picture = (output / "report.md", output / "chart.png") if output else (None, None)
    if output is not None:
        refuse_existing(overwrite, output / "report.md", output / "report.json", output / "chart.png")
    opening = MatcherOptions(None, precision, max_disparity, device, threads, network_spec)
    names = engines.split(",") if engines else ["baseline", "torch", "openvino"]
    if accuracy is not None:
        opening = _one_engine(opening, engines)
        matching = match_options(None, tile, postprocess, inspect=False)
        data = measurements.Data(accuracy, limit, split, option or [])
        measurements.plot_error_against_time(
            models, data, scales, rounds, opening, matching, as_json, report, picture
        )
        return
    if (tile, postprocess, precision) != ("auto", "auto", "auto"):
        raise InputError(
            "--tile, --postprocess and --precision go with --accuracy; otherwise the network alone is timed, "
            "and --engines selects the precision, as in openvino-bf16."
        )
    if opening != MatcherOptions() and (serve or training_step or preset is not None):
        raise InputError(
            "--network-spec, --max-disparity, --device and --threads do not go with --serve, --training-step "
            "and --preset."
        )
    if serve:
        measurements.load_server(
            (models or [files.DEFAULT])[0], (height, width), clients, seconds, soak, as_json, report
        )
        return
    if ray is not None:
        on_ray.compare((models or [files.DEFAULT])[0], (height, width), 8 * rounds, ray, as_json, report)
        return
    _probe_bf16([*names, *(["torch-bf16"] if training_step else [])])
    if training_step:
        measurements.time_training_steps(models or ["aanet"], rounds, as_json)
    elif preset == "scaling":
        measurements.time_sizes((models or ["aanet"])[0], names[-1], rounds, as_json, report, picture)
    elif preset == "paper":
        from aanet.benchmark import comparison
        from aanet.benchmark.presets import largest_common_size, paper_networks

        chosen = models or paper_networks()
        for name in chosen:
            if name not in paper_networks():
                raise InputError(
                    f"{name} is not in the paper's table; there are: {', '.join(paper_networks())}."
                )
        size = largest_common_size()
        measurements.time_predictions(
            chosen, ["torch"], size, rounds, memory, opening, as_json, report, picture, comparison
        )
    elif preset is None:
        from aanet.benchmark import report as by_engine
        from aanet.benchmark.presets import DEFAULT_NETWORKS

        chosen, size = models or list(DEFAULT_NETWORKS), (height, width)
        measurements.time_predictions(
            chosen, names, size, rounds, memory, opening, as_json, report, picture, by_engine
        )
    else:
        raise InputError(f"The presets are 'paper' and 'scaling', not {preset!r}.")


def _one_engine(opening: MatcherOptions, engine: str | None) -> MatcherOptions:
    """The options with the engine of all matchers, which may have a precision appended."""
    if engine is None:
        return opening
    if engine.endswith("-bf16"):
        return replace(opening, engine=engine.removesuffix("-bf16"), precision="bf16")
    return replace(opening, engine=engine)


def _probe_bf16(engines: list[str]) -> None:
    """Broken AMX can only be disabled before the libraries are imported."""
    from aanet.engines.bf16_support import bf16_support

    for name, card in ENGINES.items():
        if f"{name}-bf16" in engines and card.bf16 is not None:
            bf16_support(card.bf16)
