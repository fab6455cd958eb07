"""Entry point of the `aanet` command."""

from __future__ import annotations

import sys

import typer

from aanet.errors import AanetError

app = typer.Typer(
    name="aanet",
    help="Stereo matching with adaptive aggregation: a rectified pair in; disparity, depth and points out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def main() -> None:
    """Run the command; what the user can mend is one sentence on stderr and exit code 2."""
    try:
        app()
    except AanetError as error:
        sys.exit(_fail(str(error)))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.exit(_fail(f"{where}{(error.strerror or str(error)).lower()}."))


def _fail(message: str) -> int:
    print(f"aanet: {' '.join(message.split())}", file=sys.stderr)
    return 2
