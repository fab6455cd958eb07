"""The log of a server and of its child processes, on stderr."""

from __future__ import annotations

import logging

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def start_log(level: str = "warning") -> None:
    """Write messages of this package from a level on, such as "info", and warnings of other packages."""
    logging.basicConfig(level=logging.WARNING, format=_FORMAT)
    logging.getLogger("aanet").setLevel(level.upper())
