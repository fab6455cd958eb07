"""The board to print: a PDF page at true size with a ruler to check the print."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from aanet.errors import InputError
from aanet.rig.pattern import Pattern

Rectangle = tuple[float, float, float, float]  # left, top, width, height in millimeters, y downward

PAPERS = {"a4": (210.0, 297.0), "letter": (215.9, 279.4)}  # millimeters, upright
_POINTS_PER_MM = 72 / 25.4
_MARGIN = 8.0  # around the board, in millimeters; most printers leave out the outermost 5
_STRIP = 14.0  # at the bottom, for the ruler and the text
_RULER = 100
_TEXT = 2.6  # height of the letters in millimeters


def black_rectangles(pattern: Pattern) -> list[Rectangle]:
    """What is black on the board, from its top left corner: the squares, and the modules of the markers."""
    side = pattern.square_mm
    columns, rows = pattern.squares
    black = [
        (x * side, y * side, side, side) for y in range(rows) for x in range(columns) if (x + y) % 2 == 0
    ]
    return black if pattern.kind == "chessboard" else black + _marker_rectangles(pattern)


def _marker_rectangles(pattern: Pattern) -> list[Rectangle]:
    dictionary, board = pattern.aruco_dictionary, pattern.aruco_board
    modules = dictionary.markerSize + 2  # with the black frame
    found = []
    for number, corners in zip(np.ravel(board.getIds()), board.getObjPoints(), strict=True):
        left, top = (float(value) for value in np.asarray(corners).reshape(4, 3)[0, :2])
        module = (pattern.marker_mm or 0.0) / modules
        marker = cv2.aruco.generateImageMarker(dictionary, int(number), modules)
        found += [
            (left + column * module, top + row * module, module, module)
            for row, column in np.argwhere(marker == 0).tolist()
        ]
    return found


def board_pdf(pattern: Pattern, paper: str = "a4") -> bytes:
    """Draw the board on one page at true size, upright or across, whichever has room for it."""
    if paper not in PAPERS:
        raise InputError(f"The paper is one of {', '.join(PAPERS)}; got {paper!r}.")
    width, height = (count * pattern.square_mm for count in pattern.squares)
    pages = (PAPERS[paper], PAPERS[paper][::-1])
    fitting = [
        page for page in pages if width + 2 * _MARGIN <= page[0] and height + 2 * _MARGIN + _STRIP <= page[1]
    ]
    if not fitting:
        raise InputError(
            f"{pattern} with squares of {pattern.square_mm:g} mm measures {width:g}×{height:g} mm, too much "
            f"for {paper} paper; squares of up to {_largest_square(pattern, pages):g} mm fit."
        )
    page_width, page_height = fitting[0]
    left, top = (page_width - width) / 2, (page_height - _STRIP - height) / 2
    black = [(x + left, y + top, w, h) for x, y, w, h in black_rectangles(pattern)]
    ruler_left, ruler_top = 2 * _MARGIN, page_height - _STRIP
    black += _ruler(ruler_left, ruler_top)
    texts = [(ruler_left, ruler_top + 8, _caption(pattern))]
    texts += [(ruler_left + _RULER + 2, ruler_top + 4, "This ruler is 100 mm long if the print is right.")]
    return _pdf_page((page_width, page_height), black, texts)


def _largest_square(pattern: Pattern, pages: Sequence[tuple[float, float]]) -> float:
    columns, rows = pattern.squares
    sides = [
        min((width - 2 * _MARGIN) / columns, (height - 2 * _MARGIN - _STRIP) / rows)
        for width, height in pages
    ]
    return float(np.floor(max(sides) * 10) / 10)


def _caption(pattern: Pattern) -> str:
    markers = ""
    if pattern.kind == "charuco":
        markers = f" --dictionary {pattern.dictionary} --marker {pattern.marker_mm:g}"
    return (
        f"--pattern {pattern} --square {pattern.square_mm:g}{markers}   "
        "Print at 100 % (actual size), and glue it to something flat."
    )


def _ruler(left: float, top: float) -> list[Rectangle]:
    """A line with a mark every 10 mm, the outer edges of the first and the last 100 mm apart."""
    thin = 0.2
    marks = [left, *(left + ten - thin / 2 for ten in range(10, _RULER, 10)), left + _RULER - thin]
    heights = [4.0 if index % 5 == 0 else 2.5 for index in range(len(marks))]
    ticks = [(mark, top + 4 - height, thin, height) for mark, height in zip(marks, heights, strict=True)]
    return [(left, top + 4, float(_RULER), thin), *ticks]


def _pdf_page(
    page: tuple[float, float], black: Sequence[Rectangle], texts: Sequence[tuple[float, float, str]]
) -> bytes:
    """A PDF of one page; all rectangles are one path, so that no seam shows where two of them touch."""
    scale, height = _POINTS_PER_MM, page[1]
    drawing = [
        f"{x * scale:.4f} {(height - y - h) * scale:.4f} {w * scale:.4f} {h * scale:.4f} re"
        for x, y, w, h in black
    ]
    writing = [
        f"BT /F {_TEXT * scale:.2f} Tf {x * scale:.2f} {(height - y) * scale:.2f} Td ({text}) Tj ET"
        for x, y, text in texts
    ]
    stream = "\n".join(["0 g", *drawing, "f", *writing]).encode("ascii")
    box = f"[0 0 {page[0] * scale:.4f} {height * scale:.4f}]"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R /ViewerPreferences << /PrintScaling /None >> >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox {box} /Contents 4 0 R "
        "/Resources << /Font << /F 5 0 R >> >> >>".encode(),
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    content, offsets = bytearray(b"%PDF-1.6\n"), []
    for number, each in enumerate(objects, start=1):
        offsets.append(len(content))
        content += b"%d 0 obj\n%b\nendobj\n" % (number, each)
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    content += (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
        f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(content)}\n%%EOF\n"
    ).encode()
    return bytes(content)
