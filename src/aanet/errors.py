"""The one exception that a user is meant to read."""

from __future__ import annotations


class AanetError(ValueError):
    """Something the caller gave cannot be used; the message is one plain sentence saying what and why.

    The command line prints the message and exits with code 2; it never shows a traceback for it.
    """
