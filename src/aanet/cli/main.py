"""Entry point of the `aanet` command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from aanet.cli.benchmark import benchmark
from aanet.cli.convert import convert
from aanet.cli.data_check import check
from aanet.cli.data_preview import preview
from aanet.cli.data_stats import stats
from aanet.cli.data_synthesize import synthesize
from aanet.cli.demo import demo
from aanet.cli.doctor import doctor
from aanet.cli.evaluate import evaluate
from aanet.cli.export import export
from aanet.cli.figure import figure
from aanet.cli.models import models
from aanet.cli.predict import predict
from aanet.cli.pseudo_label import pseudo_label
from aanet.cli.serve import serve
from aanet.cli.train import train
from aanet.errors import AanetError, MissingExtraError
from aanet.version import __version__

# Packages that only some commands need, and which extra brings them.
EXTRAS = {
    **dict.fromkeys(("lightning", "tensorboard", "tomli"), "train"),
    **dict.fromkeys(("fastapi", "uvicorn", "prometheus_client"), "web"),
}

app = typer.Typer(
    name="aanet",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

app.command()(demo)
app.command()(predict)
app.command()(models)
app.command()(benchmark)
app.command()(convert)
app.command()(export)
app.command()(evaluate)
app.command()(train)
app.command("pseudo-label")(pseudo_label)
app.command()(serve)
app.command()(figure)
app.command()(doctor)

data = typer.Typer(help="Look at datasets, and make a procedural one.", no_args_is_help=True)
data.command()(check)
data.command()(stats)
data.command()(synthesize)
data.command()(preview)
app.add_typer(data, name="data")


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
    ] = False,
) -> None:
    """Stereo matching with adaptive aggregation: a rectified pair in; disparity, depth and points out."""
    if show:
        typer.echo(f"aanet {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command; what the user can mend is one sentence on stderr and exit code 2."""
    try:
        _run()
    except AanetError as error:
        sys.exit(_fail(str(error)))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.exit(_fail(f"{where}{(error.strerror or str(error)).lower()}."))


def _run() -> None:
    try:
        app()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        extra = EXTRAS[package]
        message = f"This command needs {package}: pip install 'aanet[{extra}]' brings it."
        raise MissingExtraError(message) from error


def _fail(message: str) -> int:
    print(f"aanet: {' '.join(message.split())}", file=sys.stderr)
    return 2
