"""`aanet convert`: rewrite a checkpoint as a weight file in safetensors format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aanet.cli.options import Overwrite, refuse_existing


def convert(
    file: Annotated[
        Path,
        typer.Argument(help="A checkpoint of the published AANet code (.pth), or a weight file of aanet."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write.",
            show_default="the input file with the suffix .safetensors",
        ),
    ] = None,
    half: Annotated[
        bool, typer.Option("--half", help="Store the weights in float16, which halves the file size.")
    ] = False,
    heads: Annotated[
        bool, typer.Option("--heads", help="Keep the prediction heads that are used in training only.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Convert a checkpoint to safetensors.

    The network and its disparity range are detected from the checkpoint's keys and stored in the new file.

    Example: aanet convert aanet_kitti15.pth -o aanet_kitti15.safetensors
    """
    target = output or file.with_suffix(".safetensors")
    refuse_existing(overwrite, target)
    import torch

    from aanet.models import zoo
    from aanet.models.weights import checkpoint

    stored = checkpoint.read(file)
    keep_heads = heads and stored.architecture.training_heads
    network = stored.network(training_heads=keep_heads)
    dtype = torch.float16 if half else torch.float32
    checkpoint.save(network, target, stored.facts, stored.hints, dtype)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    typer.echo(
        f"Wrote {target}: {zoo.card(network.architecture.builder).title}, "
        f"disparities below {network.max_disparity}, {parameters / 1e6:.2f} M parameters"
        f"{', with training heads' if keep_heads else ''}."
    )
