"""`aanet convert`: any checkpoint → our format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def convert(
    file: Annotated[Path, typer.Argument(help="A checkpoint of the authors, or a file of ours.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write; beside the file, as .safetensors, by default."),
    ] = None,
    half: Annotated[bool, typer.Option("--half", help="Store float16: half the size.")] = False,
    heads: Annotated[
        bool, typer.Option("--heads/--no-heads", help="Keep the heads that only training needs.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Recognize the network in a checkpoint and write it as safetensors that describe themselves."""
    import torch

    from aanet.errors import WriteError
    from aanet.models import zoo
    from aanet.models.weights import checkpoint

    target = output or file.with_suffix(".safetensors")
    if target.exists() and not overwrite:
        raise WriteError(
            f"{target} exists already; name another with --output or replace it with --overwrite."
        )
    stored = checkpoint.read(file)
    keep_heads = heads and stored.architecture.training_heads
    network = stored.network(training_heads=keep_heads)
    dtype = torch.float16 if half else torch.float32
    checkpoint.save(network, target, stored.facts, stored.hints, dtype)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    typer.echo(
        f"{file} holds {zoo.card(network.architecture.builder).title} "
        f"(disparities below {network.max_disparity}, {parameters / 1e6:.2f} M parameters"
        f"{', with training heads' if keep_heads else ''}); wrote {target}."
    )
