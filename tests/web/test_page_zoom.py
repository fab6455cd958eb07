"""Zooming and moving the picture in 2D: what is read and measured stays that of the pixels."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

from aanet.io.images import decode_image
from aanet.result import StereoResult
from helpers.chromium import CHROMIUM, picture
from helpers.page import match, open_page
from helpers.server import Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]
WIDTH, HEIGHT = 200, 120  # of the small pair


class Box(NamedTuple):
    """Where an element is in the window."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> tuple[float, float]:
        return self.x + self.width / 2, self.y + self.height / 2


def box(page: Page, selector: str) -> Box:
    found = page.locator(selector).bounding_box()
    assert found is not None
    return Box(found["x"], found["y"], found["width"], found["height"])


def over_pixel(page: Page, x: int, y: int) -> tuple[float, float]:
    """Where the center of a pixel is in the window."""
    under = box(page, "#under")
    return under.x + under.width * (x + 0.5) / WIDTH, under.y + under.height * (y + 0.5) / HEIGHT


def zoom(page: Page) -> float:
    return box(page, "#under").width / box(page, "#stage").width


def turn_wheel(page: Page, delta: int, times: int = 1) -> None:
    for _ in range(times):
        page.mouse.wheel(0, delta)
        page.wait_for_timeout(50)  # the event arrives after the call has returned


def pixel_read(page: Page) -> tuple[int, int]:
    """The pixel whose values are shown."""
    return read(page)[:2]


def read(page: Page) -> tuple[int, int, float]:
    """The pixel and the disparity that are shown."""
    found = re.match(r"x (\d+), y (\d+) · ([\d.]+) px", page.inner_text("#readout"))
    assert found
    return int(found[1]), int(found[2]), float(found[3])


def color_at(page: Page, x: float, y: float) -> np.ndarray:
    """The color on the screen."""
    clip = {"x": int(x), "y": int(y), "width": 1, "height": 1}
    return decode_image(page.screenshot(clip=clip), "screenshot")[0, 0, :3].astype(int)  # type: ignore[arg-type]


def test_a_small_pair_fills_the_frame(page: Page, files: dict[str, Path]) -> None:
    match(page, files)
    for size in ((1280, 900), (390, 844), (1400, 500)):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        stage, column = box(page, "#stage"), box(page, "#flat")
        assert stage.width == pytest.approx(min(column.width, 0.68 * size[1] * WIDTH / HEIGHT), abs=2)
        assert stage.width / stage.height == pytest.approx(WIDTH / HEIGHT, rel=0.01)
        assert box(page, "#under") == pytest.approx(stage, abs=1)


def test_the_wheel_zooms_around_the_pointer(
    page: Page, files: dict[str, Path], expected: StereoResult
) -> None:
    """At every zoom, the values under the pointer are those of the pixel that is seen there."""
    match(page, files)
    colors = picture(page, "under")
    page.mouse.move(*over_pixel(page, 150, 40))
    assert pixel_read(page) == (150, 40)
    before = zoom(page)
    for _ in range(4):
        turn_wheel(page, -200)
        assert zoom(page) > before
        before = zoom(page)
        assert over_pixel(page, 150, 40) == pytest.approx(over_pixel(page, *pixel_read(page)), abs=2)
    turn_wheel(page, -400, times=6)
    assert box(page, "#under").width / WIDTH == pytest.approx(40, rel=0.01)  # where the zoom ends
    for share in (0.1, 0.5, 0.9):
        stage = box(page, "#stage")
        at = stage.x + share * stage.width, stage.y + (1 - share) * stage.height
        page.mouse.move(*at)
        x, y, disparity = read(page)
        assert disparity == pytest.approx(expected.disparity[y, x], abs=0.006)
        center = over_pixel(page, x, y)
        assert max(abs(a - b) for a, b in zip(at, center, strict=True)) <= 20.1  # half of a pixel's side
        assert np.abs(color_at(page, *center) - colors[y, x]).max() <= 2
    turn_wheel(page, 400, times=9)
    assert zoom(page) == pytest.approx(1)
    assert page.evaluate("scrollY") == 0  # the same turn of the wheel does not scroll the page as well
    page.wait_for_timeout(500)
    turn_wheel(page, 300, times=2)
    assert page.evaluate("scrollY") > 0  # but the next one does


def test_the_ruler_measures_the_pixels_that_are_seen(
    page: Page, files: dict[str, Path], expected: StereoResult
) -> None:
    match(page, files)
    page.mouse.move(*over_pixel(page, 100, 60))
    turn_wheel(page, -300, times=3)
    ends = [(95, 55), (108, 66)]
    clicked = [over_pixel(page, *end) for end in ends]
    page.mouse.click(*clicked[0])
    page.mouse.click(*clicked[1])
    length = expected.distance(*ends)
    assert page.inner_text("#ruler") == f"From x 95, y 55 to x 108, y 66: {length}"

    def drawn() -> list[float]:
        """The ends of the line in the window."""
        return page.evaluate(
            """() => {
                const line = document.querySelector("#ruler-line line:last-child");
                const at = (x, y) => new DOMPoint(x, y).matrixTransform(line.getScreenCTM());
                const value = (name) => line[name].baseVal.value;
                const ends = [at(value("x1"), value("y1")), at(value("x2"), value("y2"))];
                return ends.flatMap((end) => [end.x, end.y]); }"""
        )

    assert drawn() == pytest.approx([*clicked[0], *clicked[1]], abs=1.5)
    page.click("#zoom-reset")
    assert drawn() == pytest.approx([*over_pixel(page, *ends[0]), *over_pixel(page, *ends[1])], abs=1.5)


def test_dragging_moves_the_picture_and_a_double_click_resets_it(page: Page, files: dict[str, Path]) -> None:
    match(page, files)
    stage = box(page, "#stage")
    before = page.inner_text("#ruler")
    page.mouse.dblclick(*stage.middle)
    assert zoom(page) == pytest.approx(4)
    page.mouse.move(*stage.middle)
    held = pixel_read(page)
    page.mouse.down()
    page.mouse.move(stage.middle[0] + 90, stage.middle[1] - 40, steps=5)
    page.mouse.up()
    assert over_pixel(page, *held) == pytest.approx((stage.middle[0] + 90, stage.middle[1] - 40), abs=12)
    page.mouse.down()
    page.mouse.move(stage.x - 50, stage.y + 3 * stage.height, steps=5)
    page.mouse.up()
    under = box(page, "#under")  # it always covers the frame
    assert under.y == pytest.approx(stage.y, abs=1)
    assert under.x <= stage.x + 1
    assert under.x + under.width >= stage.x + stage.width - 1
    page.mouse.dblclick(*stage.middle)
    assert box(page, "#under") == pytest.approx(stage, abs=1)
    assert page.inner_text("#ruler") == before  # neither drags nor double clicks measure
    assert page.is_hidden("#ruler-line")


def test_the_keyboard_and_the_buttons_zoom(
    page: Page, files: dict[str, Path], expected: StereoResult
) -> None:
    match(page, files)
    assert page.is_disabled("#zoom-reset")
    page.focus("#stage")
    for _ in range(4):
        page.keyboard.press("+")
    assert zoom(page) == pytest.approx(1.5**4, rel=0.01)
    for _ in range(12):
        page.keyboard.press("Shift+ArrowRight")
    disparity = expected.disparity[HEIGHT // 2, WIDTH - 1]
    assert read(page) == (WIDTH - 1, HEIGHT // 2, pytest.approx(disparity, abs=0.006))
    stage, cursor = box(page, "#stage"), box(page, "#cross").middle
    assert stage.x < cursor[0] < stage.x + stage.width  # the picture follows the cursor
    assert cursor == pytest.approx(over_pixel(page, WIDTH - 1, HEIGHT // 2), abs=1.5)
    page.keyboard.press("-")
    assert zoom(page) == pytest.approx(1.5**3, rel=0.01)
    page.keyboard.press("0")
    assert zoom(page) == 1
    page.click("#zoom-in")
    page.click("#zoom-in")
    page.click("#zoom-out")
    assert page.inner_text("#zoom-value") == "1.5×"
    page.check("[value=confidence]", force=True)  # another view shows the same part
    assert zoom(page) == pytest.approx(1.5)
    page.click("#zoom-reset")
    assert zoom(page) == 1
    assert page.evaluate("document.activeElement.id") == "stage"


def test_two_images_are_compared_at_every_zoom(
    page: Page, files: dict[str, Path], expected: StereoResult
) -> None:
    match(page, files)
    colors = picture(page, "under")
    page.select_option("#against", "left")
    page.mouse.move(*over_pixel(page, 100, 60))
    turn_wheel(page, -400, times=4)
    divider, stage = box(page, "#divider"), box(page, "#stage")
    page.mouse.move(*divider.middle)
    page.mouse.down()
    page.mouse.move(stage.x + 0.7 * stage.width, stage.middle[1], steps=4)
    page.mouse.up()
    assert page.is_hidden("#ruler-line")
    assert box(page, "#divider").middle[0] == pytest.approx(stage.x + 0.7 * stage.width, abs=2)
    for share, shown in ((0.6, expected.left.astype(int)), (0.8, colors)):
        page.mouse.move(stage.x + share * stage.width, stage.y + 0.3 * stage.height)
        x, y = pixel_read(page)
        assert np.abs(color_at(page, *over_pixel(page, x, y)) - shown[y, x]).max() <= 2


def test_fingers_pinch_and_move_the_picture(
    browser: Browser, local_server: Server, files: dict[str, Path]
) -> None:
    """One finger scrolls the page until the picture is enlarged; then it moves the picture."""
    for page in open_page(browser, local_server.url, has_touch=True, viewport={"width": 390, "height": 844}):
        match(page, files)
        page.locator("#stage").scroll_into_view_if_needed()
        fingers = page.context.new_cdp_session(page)
        x, y = box(page, "#stage").middle

        def touch(kind: str, *at: tuple[float, float], fingers: object = fingers) -> None:
            points = [{"x": each[0], "y": each[1], "id": number} for number, each in enumerate(at)]
            fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})  # type: ignore[attr-defined]

        assert (
            page.evaluate("getComputedStyle(document.getElementById('stage')).touchAction") == "pan-x pan-y"
        )
        touch("touchStart", (x - 20, y), (x + 20, y))
        for spread in (30, 40, 50, 60):
            touch("touchMove", (x - spread, y), (x + spread, y))
        touch("touchEnd")
        assert zoom(page) == pytest.approx(3, rel=0.05)
        assert over_pixel(page, 100, 60) == pytest.approx((x, y), abs=6)
        assert page.evaluate("getComputedStyle(document.getElementById('stage')).touchAction") == "none"
        scrolled = page.evaluate("scrollY")
        before = over_pixel(page, 100, 60)
        touch("touchStart", (x, y))
        for step in (10, 20, 30, 40):
            touch("touchMove", (x + step, y - step))
        touch("touchEnd")
        assert over_pixel(page, 100, 60) == pytest.approx((before[0] + 40, before[1] - 40), abs=3)
        assert page.evaluate("scrollY") == scrolled
