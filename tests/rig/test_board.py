from __future__ import annotations

import re

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from aanet.errors import InputError
from aanet.rig.board import board_pdf
from aanet.rig.corners import find_corners
from aanet.rig.pattern import Pattern

DOTS_PER_MM = 4


def page_rectangles(pdf: bytes) -> tuple[tuple[float, float], list[tuple[float, ...]]]:
    """The size of the page and its rectangles in millimeters, y downward, as a printer computes them."""
    (box,) = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    width, height = (float(side) / 72 * 25.4 for side in box)
    drawn = [
        [float(value) / 72 * 25.4 for value in numbers]
        for numbers in re.findall(rb"^([\d.]+) ([\d.]+) ([\d.]+) ([\d.]+) re$", pdf, re.MULTILINE)
    ]
    return (width, height), [(x, height - y - h, w, h) for x, y, w, h in drawn]


def printed_page(pdf: bytes) -> NDArray[np.uint8]:
    (width, height), rectangles = page_rectangles(pdf)
    paper = np.full((round(height * DOTS_PER_MM), round(width * DOTS_PER_MM)), 255, np.uint8)
    for x, y, w, h in rectangles:
        left, right, top, bottom = (round(edge * DOTS_PER_MM) for edge in (x, x + w, y, y + h))
        paper[top:bottom, left:right] = 0
    return cv2.GaussianBlur(paper, (0, 0), 1).astype(np.uint8)


@pytest.mark.parametrize(
    ("pattern", "paper", "page"),
    [
        (Pattern.parse("chessboard:9x6", 25), "a4", (297, 210)),
        (Pattern.parse("charuco:5x7", 35, 25, "5x5_100"), "letter", (215.9, 279.4)),
    ],
    ids=str,
)
def test_the_printed_board_is_found_at_its_true_size(
    pattern: Pattern, paper: str, page: tuple[float, float]
) -> None:
    pdf = board_pdf(pattern, paper)
    np.testing.assert_allclose(page_rectangles(pdf)[0], page, atol=0.01)
    found = find_corners(printed_page(pdf), pattern)
    assert found is not None
    assert not found.is_blurred
    np.testing.assert_array_equal(found.numbers, np.arange(len(pattern.points)))
    # A rotation and a shift bring the corners in the print to those of the pattern, in millimeters.
    columns = pattern.corners[0]
    for numbers in ((0, 1), (0, columns), (0, len(pattern.points) - 1)):
        first, last = found.of(np.array(numbers)) / DOTS_PER_MM
        true = np.linalg.norm(np.diff(pattern.points[list(numbers)], axis=0)) * 1000
        assert np.linalg.norm(last - first) == pytest.approx(true, abs=0.1)


def test_the_ruler_is_100_mm_long_and_apart_from_the_board() -> None:
    pattern = Pattern.parse("chessboard:9x6", 25)
    _, rectangles = page_rectangles(board_pdf(pattern))
    squares = [each for each in rectangles if each[2] > 24 and each[3] > 24]
    ruler = [each for each in rectangles if each not in squares]
    assert len(squares) == 35
    assert max(x + w for x, _, w, _ in ruler) - min(x for x, _, _, _ in ruler) == pytest.approx(100, abs=0.01)
    assert min(y for _, y, _, _ in ruler) - max(y + h for _, y, _, h in squares) > 5


def test_the_pdf_is_well_formed() -> None:
    pdf = board_pdf(Pattern.parse("chessboard:9x6", 25))
    (start,) = re.findall(rb"startxref\n(\d+)", pdf)
    assert pdf[int(start) :].startswith(b"xref")
    offsets = [int(offset) for offset in re.findall(rb"(\d{10}) 00000 n", pdf)]
    assert [pdf[offset:].split(b" ")[0] for offset in offsets] == [b"1", b"2", b"3", b"4", b"5"]
    ((length, stream),) = re.findall(rb"/Length (\d+) >>\nstream\n(.*)\nendstream", pdf, re.DOTALL)
    assert int(length) == len(stream)
    assert b"/PrintScaling /None" in pdf


def test_a_board_that_does_not_fit_is_refused_with_the_size_that_does() -> None:
    with pytest.raises(InputError, match=r"300×210 mm, too much for a4 paper; squares of up to 25\.7 mm fit"):
        board_pdf(Pattern.parse("chessboard:9x6", 30))
    board_pdf(Pattern.parse("chessboard:9x6", 25.7))
    with pytest.raises(InputError, match="one of a4, letter; got 'a3'"):
        board_pdf(Pattern.parse("chessboard:9x6", 25), "a3")
