"""The calibration board: a chessboard, or a chessboard with ArUco markers in its white squares (ChArUco)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
from numpy.typing import NDArray

from aanet.errors import InputError, did_you_mean

KINDS = ("chessboard", "charuco")
DEFAULT_DICTIONARY = "4x4_50"
_MARKER_PART = 0.75  # of the side of a square, unless stated
_FEWEST, _MOST = 3, 100  # squares or corners along a side
_LARGEST_SQUARE_MM = 10_000


@dataclass(frozen=True)
class Pattern:
    """A calibration board; `Pattern.parse("chessboard:9x6", 25)` makes one.

    Attributes:
        kind: "chessboard" or "charuco".
        columns: Inner corners per row of a chessboard, squares per row of a ChArUco board, as OpenCV counts.
        rows: The same per column.
        square_mm: Side of a square in millimeters.
        marker_mm: Side of a marker in millimeters; None for a chessboard.
        dictionary: Dictionary of the markers, such as 4x4_50; None for a chessboard.
    """

    kind: str
    columns: int
    rows: int
    square_mm: float
    marker_mm: float | None = None
    dictionary: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"A pattern is a chessboard or a charuco board; got {self.kind!r}.")
        if not (_FEWEST <= self.columns <= _MOST and _FEWEST <= self.rows <= _MOST):
            raise InputError(
                f"A pattern has {_FEWEST} to {_MOST} columns and rows; got {self.columns}x{self.rows}."
            )
        if not 0 < self.square_mm <= _LARGEST_SQUARE_MM:
            raise InputError(
                f"The side of a square must be positive, in millimeters; got {self.square_mm:g}."
            )
        if self.kind == "charuco":
            self._check_markers()
        elif self.marker_mm is not None or self.dictionary is not None:
            raise InputError("A chessboard has no markers; a marker size or dictionary is for charuco only.")

    @classmethod
    def parse(
        cls,
        text: str,
        square_mm: float,
        marker_mm: float | None = None,
        dictionary: str | None = None,
    ) -> Pattern:
        """Make a pattern from a text such as chessboard:9x6 (inner corners) or charuco:5x7 (squares)."""
        match = re.fullmatch(r"([a-z]+):(\d{1,3})[x×](\d{1,3})", text.strip().lower())
        if match is None:
            raise InputError(f"A pattern is written as chessboard:9x6 or charuco:5x7; got {text[:40]!r}.")
        kind, columns, rows = match[1], int(match[2]), int(match[3])
        if kind == "charuco":
            marker_mm = round(_MARKER_PART * square_mm, 3) if marker_mm is None else marker_mm
            dictionary = (dictionary or DEFAULT_DICTIONARY).lower()
        return cls(kind, columns, rows, square_mm, marker_mm, dictionary)

    def __str__(self) -> str:
        return f"{self.kind}:{self.columns}x{self.rows}"

    @property
    def squares(self) -> tuple[int, int]:
        """Columns and rows of squares."""
        more = 1 if self.kind == "chessboard" else 0
        return self.columns + more, self.rows + more

    @property
    def corners(self) -> tuple[int, int]:
        """Columns and rows of inner corners."""
        columns, rows = self.squares
        return columns - 1, rows - 1

    @cached_property
    def points(self) -> NDArray[np.float64]:
        """The inner corners on the board in meters, [N, 3], row by row from the first; Z is 0."""
        columns, rows = self.corners
        y, x = np.mgrid[:rows, :columns]
        flat = np.stack([x.ravel(), y.ravel(), np.zeros(columns * rows)], axis=1)
        return flat.astype(np.float64) * (self.square_mm / 1000)

    @cached_property
    def aruco_dictionary(self) -> cv2.aruco.Dictionary:
        """OpenCV's dictionary of the markers."""
        names = {
            name[5:].lower(): getattr(cv2.aruco, name) for name in dir(cv2.aruco) if name.startswith("DICT_")
        }
        wanted = self.dictionary or ""
        if wanted not in names:
            hint = did_you_mean(wanted, names)
            raise InputError(f"There is no marker dictionary {wanted!r}{hint}; one is {DEFAULT_DICTIONARY}.")
        return cv2.aruco.getPredefinedDictionary(names[wanted])

    @cached_property
    def aruco_board(self) -> cv2.aruco.CharucoBoard:
        """OpenCV's description of a ChArUco board, in millimeters."""
        size = (self.columns, self.rows)
        return cv2.aruco.CharucoBoard(size, self.square_mm, self.marker_mm or 0.0, self.aruco_dictionary)

    def _check_markers(self) -> None:
        if self.marker_mm is None or not 0 < self.marker_mm < self.square_mm:
            raise InputError(
                f"A marker must be smaller than its square of {self.square_mm:g} mm; got {self.marker_mm} mm."
            )
        needed, there = self.columns * self.rows // 2, len(self.aruco_dictionary.bytesList)
        if needed > there:
            raise InputError(f"{self} needs {needed} markers; the dictionary {self.dictionary} has {there}.")
