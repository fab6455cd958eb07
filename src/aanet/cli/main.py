"""Entry point of the `aanet` command."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from aanet.cli.adapt import adapt
from aanet.cli.benchmark import benchmark
from aanet.cli.calibrate import calibrate, calibrate_board
from aanet.cli.console import replace_unencodable_characters, sentence
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
from aanet.cli.inspect import inspect_file
from aanet.cli.live import live
from aanet.cli.models import models
from aanet.cli.predict import predict
from aanet.cli.pseudo_label import pseudo_label
from aanet.cli.serve import serve
from aanet.cli.study_ablation import ablation
from aanet.cli.study_pseudo_labels import pseudo_labels
from aanet.cli.study_sampling import sampling
from aanet.cli.train import train
from aanet.errors import AanetError, MissingExtraError
from aanet.version import __version__

# Packages that only some commands need, and the extra that installs each.
EXTRAS = {
    **dict.fromkeys(("lightning", "tensorboard"), "train"),
    **dict.fromkeys(("ray", "pyarrow", "fsspec"), "cluster"),
    **dict.fromkeys(("fastapi", "uvicorn", "prometheus_client"), "web"),
}


class Command(TyperCommand):
    """A command whose help shows no value type for flags, which take no value."""

    def get_params(self, ctx: Any) -> Any:
        """Return all parameters."""
        return _without_flag_types(super().get_params(ctx))


class Group(TyperGroup):
    """A group of commands whose own flags are shown likewise."""

    def get_params(self, ctx: Any) -> Any:
        """Return all parameters."""
        return _without_flag_types(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command of the first word, or of the first two if one has such a name."""
        two = " ".join(args[:2])
        return super().resolve_command(ctx, [two, *args[2:]] if two in self.commands else args)


def _without_flag_types(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


def _add(
    to: typer.Typer, panel: str | None, *commands: Callable[..., None], **named: Callable[..., None]
) -> None:
    """Add commands under their functions' names or other ones, with the docstrings as help texts."""
    for name, command in {**{each.__name__.replace("_", "-"): each for each in commands}, **named}.items():
        # Typer keeps the line breaks of the source inside a paragraph.
        text = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.getdoc(command) or "")
        to.command(name, cls=Command, help=text, rich_help_panel=panel)(command)


MATCHING, TRAINING, MODELS = "Match images", "Train and evaluate", "Inspect and convert networks"

app = typer.Typer(
    name="aanet",
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["--help", "-h"]},
)
data = typer.Typer(cls=Group, no_args_is_help=True, help="Check, analyze and synthesize datasets.")
_add(data, None, check, stats, synthesize, preview)
study = typer.Typer(cls=Group, no_args_is_help=True, help="Repeat studies of the paper on your data.")
_add(study, None, ablation, sampling, pseudo_labels)
_add(app, MATCHING, demo, predict, live, serve, calibrate, **{"calibrate board": calibrate_board})
_add(app, TRAINING, train, evaluate, pseudo_label, adapt)
app.add_typer(data, name="data", rich_help_panel=TRAINING)
app.add_typer(study, name="study", rich_help_panel=TRAINING)
_add(app, MODELS, models, benchmark, inspect=inspect_file)
_add(app, MODELS, export, convert, figure)
_add(app, "Installation", doctor)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
    ] = False,
) -> None:
    """Stereo matching: from rectified image pairs to disparity, depth and point clouds."""
    if show:
        typer.echo(f"aanet {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command; an error that the user can fix is one sentence on stderr and exit code 2."""
    replace_unencodable_characters()
    try:
        _run()
    except AanetError as error:
        sys.exit(_fail(sentence(error)))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.exit(_fail(f"{where}{(error.strerror or str(error)).lower()}."))
    except Exception as error:
        if not _lacks_memory(error):
            raise
        sys.exit(_fail("There is not enough free memory for this command; try smaller images or tiles."))


def _run() -> None:
    try:
        app()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        command = f"pip install 'aanet[{EXTRAS[package]}]'"
        raise MissingExtraError(
            f"This command needs the package {package}; install it with {command}."
        ) from error


def _lacks_memory(error: Exception) -> bool:
    """Whether an allocation failed; OpenCV, OpenVINO and PyTorch report it with errors of their own."""
    words = ("insufficient memory", "allocate memory", "bad_alloc", "out of memory")
    return isinstance(error, MemoryError) or any(each in str(error).lower() for each in words)


def _fail(message: str) -> int:
    print(f"aanet: {' '.join(message.split())}", file=sys.stderr)
    return 2
