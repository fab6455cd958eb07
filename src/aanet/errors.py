"""The errors that a user is meant to read, by what the caller can do about them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AanetError(ValueError):
    """Something the caller gave cannot be used; the message is one plain sentence saying what and why.

    The command line prints the message and exits with code 2; it never shows a traceback for it.
    """


class InputError(AanetError):
    """An argument, an image or a calibration has a value that makes no sense here; give another one."""


class ReadError(AanetError):
    """A file is missing, damaged, or of another kind than expected."""


class WriteError(AanetError):
    """A file cannot be written: the disk is full, or the folder is not writable."""


class MissingExtraError(AanetError):
    """A package of an optional extra is not installed; the message says how to install it."""


class UnsupportedError(AanetError):
    """Each argument is valid, but not their combination, or not on this machine."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return " (did you mean 'scale'?)" for the known word that is closest, or "" if none is close."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
