"""Errors with messages for users, classified by what the caller can do about them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

# What Python calls the options that an `OptionError` names.
_PYTHON_OPTIONS = {
    "calibration": "calibration=",
    "check": "check=True",
    "second_file": "right_path= to load_calibration",
    "unit": 'unit="mm", "cm" or "m" to load_calibration',
    "rectified": "rectified=True to load_calibration",
    "resized": "resized=True to load_calibration",
}


class AanetError(ValueError):
    """The base class; the message is one sentence that a user can understand.

    The command line prints the message without a traceback and exits with code 2.
    """


class InputError(AanetError):
    """An argument, an image or a calibration has an invalid value."""


class OptionError(InputError):
    """A problem that an option solves, which Python, the command line and the HTTP API call differently.

    Attributes:
        problem: What is wrong, without a period.
        remedy: What to do; options stand in it as {unit}, {rectified} and so on.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return self.worded(_PYTHON_OPTIONS)

    def worded(self, options: Mapping[str, str]) -> str:
        """Return the sentence with the names of the options at one place."""
        return f"{self.problem}; {self.remedy.format_map(options)}."


class ReadError(AanetError):
    """A file is missing, damaged or of an unexpected type."""


class WriteError(AanetError):
    """A file cannot be written, for example because the disk is full or the folder is read-only."""


class MissingExtraError(AanetError):
    """An optional package is not installed; the message tells how to install it."""


class UnsupportedError(AanetError):
    """Each argument is valid, but not in this combination or not on this machine."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return " (did you mean 'scale'?)" for the known word that is closest, or "" if none is close."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
