"""A live session: the newest frame is matched, nothing grows, and what goes wrong is told and gets better."""

from __future__ import annotations

import asyncio
import io
import json
import re
import threading
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI

from aanet.errors import InputError
from aanet.geometry.camera import StereoCamera
from aanet.geometry.rectification import Calibration
from aanet.inference.save_options import SaveOptions
from aanet.io import newest
from aanet.io.frames import StereoVideo
from aanet.io.images import decode_image
from aanet.outputs import OUTPUTS
from aanet.web import live as live_module
from aanet.web.app import create_app
from aanet.web.live import LiveOptions, LiveSession
from aanet.web.live_view import encode_view
from helpers.asgi import IN_PROCESS, ask
from helpers.fake_camera import FakeCamera, until
from helpers.fake_engine import FakeEngine

LIVE = replace(IN_PROCESS, open_at_once=False)
CAMERA = Calibration(StereoCamera(fx=100, cx=32, cy=24, baseline_m=0.1))


def brightness(left: np.ndarray) -> np.ndarray:
    """A disparity of a tenth of the gray value, which tells the frames apart."""
    return left[:, 0] * 25.5


class Rig:
    """A camera and the session that shows it."""

    def __init__(self, engine: FakeEngine, options: LiveOptions, ended: bool) -> None:
        self.camera = FakeCamera()
        self.camera.ended = ended
        self.camera.deliver(10)
        self.session = LiveSession(engine.matcher, self.camera.open, options)

    @property
    def value(self) -> int:
        """The gray value of the frame that is shown."""
        return round(float(self.session.shown.result.disparity.mean()) * 10)

    def show(self, value: int) -> None:
        self.session.watch()
        self.camera.deliver(value)
        until(lambda: self.value == value)


Start = Callable[..., Rig]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Start]:
    monkeypatch.setattr(newest, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(live_module, "_RETRY_SECONDS", 0.01)
    rigs: list[Rig] = []

    def begin(engine: FakeEngine | None = None, ended: bool = False, **options: Any) -> Rig:
        rigs.append(Rig(engine or FakeEngine(brightness), LiveOptions(folder=tmp_path, **options), ended))
        return rigs[-1]

    yield begin
    for rig in rigs:
        rig.camera.ended = True
        rig.session.close()
    assert not {"camera", "live"} & {thread.name for thread in threading.enumerate()}


def test_frames_that_come_while_one_is_matched_are_dropped_but_the_newest(start: Start) -> None:
    go, matched = threading.Semaphore(1), []

    def slow(left: np.ndarray) -> np.ndarray:
        go.acquire()
        matched.append(round(float(left.mean() * 255)))
        return brightness(left)

    rig = start(FakeEngine(slow))
    rig.camera.deliver(20)
    until(lambda: rig.camera.delivered == 2)
    time.sleep(0.05)  # the second frame is being matched now, or will be the newest
    rig.camera.deliver(30, 40, 50)
    until(lambda: rig.camera.delivered == 5)
    for _ in range(3):
        go.release()
    until(lambda: rig.value == 50)
    assert matched[0] == 10
    assert matched[-1] == 50
    assert len(matched) <= 3
    go.release()


def test_an_unplugged_camera_is_told_and_comes_back(start: Start) -> None:
    rig = start()
    rig.show(20)
    rig.camera.plugged = False
    until(lambda: "Trying to open it again" in (rig.session.problem or ""))
    assert rig.value == 20  # stays
    rig.camera.plugged = True
    rig.show(30)
    assert rig.session.problem is None


def test_a_paused_session_keeps_its_result(start: Start) -> None:
    rig = start()
    rig.show(20)
    rig.session.paused = True
    number = rig.session.shown.number
    delivered = rig.camera.delivered
    rig.camera.deliver(30, 40)
    until(lambda: rig.camera.delivered == delivered + 2)
    time.sleep(0.05)
    assert (rig.value, rig.session.shown.number) == (20, number)
    rig.session.paused = False
    rig.show(50)


def test_nothing_is_matched_while_nobody_watches(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine(brightness)
    rig = start(engine)
    monkeypatch.setattr(live_module, "UNWATCHED_SECONDS", -1.0)
    time.sleep(0.6)  # until the thread no longer waits for a frame
    count = len(engine.shapes)
    rig.camera.deliver(30)
    until(lambda: rig.camera.delivered == 2)
    time.sleep(0.05)
    assert len(engine.shapes) == count
    monkeypatch.undo()
    rig.show(40)


def test_a_frame_that_cannot_be_matched_is_told_and_the_next_one_is_shown(start: Start) -> None:
    rig = start(calibration=CAMERA.for_size(64, 48))
    rig.camera.shape = (48, 80, 3)
    rig.camera.deliver(20)
    until(lambda: "for images of 64×48 pixels" in (rig.session.problem or ""))
    rig.camera.shape = (48, 64, 3)
    rig.show(30)
    until(lambda: rig.session.problem is None)


def test_a_calibration_for_another_size_is_an_error_at_once(start: Start) -> None:
    with pytest.raises(InputError, match="for images of 99×48 pixels"):
        start(calibration=CAMERA.for_size(99, 48), ended=True)


def test_the_average_along_time_is_reset_when_a_camera_comes_back(start: Start) -> None:
    rig = start(FakeEngine(lambda left: left[:, 0] * 2.55), temporal=0.5)
    shown = lambda: round(float(rig.session.shown.result.disparity.mean()), 3)  # noqa: E731
    rig.camera.deliver(20)
    until(lambda: shown() == 0.15)  # between 0.1 and 0.2
    rig.camera.plugged = False
    until(lambda: rig.session.problem is not None)
    rig.camera.plugged = True
    rig.camera.deliver(30)
    until(lambda: shown() == 0.3)


def test_the_colors_have_one_range_which_the_first_frame_decides(start: Start) -> None:
    ramp = np.tile(np.linspace(0, 40, 64, dtype=np.float32), (48, 1))
    rig = start(FakeEngine(lambda left: ramp + left[:, 0] * 0))
    low, high = rig.session.color_range
    assert low == 0
    assert 45 < high < 55
    fixed = start(saving=SaveOptions(range="3:9")).session
    assert fixed.color_range == fixed.saving.range == (3, 9)
    meters = start(saving=SaveOptions(range="2:5m"), calibration=CAMERA).session
    assert meters.color_range == pytest.approx((100 * 0.1 / 5, 100 * 0.1 / 2))
    with pytest.raises(InputError, match="needs a calibration"):
        start(saving=SaveOptions(range="2:5m"), ended=True)


def test_the_view_has_every_disparity_to_a_fraction_of_a_pixel(start: Start) -> None:
    result = start().session.shown.result
    rng = np.random.default_rng(0)
    for largest, error in ((200, 2**-9), (900, 2**-7)):
        result.disparity = rng.uniform(0, largest, (48, 64)).astype(np.float32)
        result.disparity[3, 4], result.confidence[5, 6] = np.nan, 0.5
        view = encode_view(result)
        disparity, confidence = decode(view.step, view.maps)
        assert np.isnan(disparity[3, 4])
        assert np.nanmax(np.abs(disparity - result.disparity)) <= error
        assert np.abs(confidence - result.confidence).max() <= 0.5 / 255 + 1e-6
        assert decode_image(view.left, "left").shape == (48, 64, 3)


def decode(step: float, maps: bytes) -> tuple[np.ndarray, np.ndarray]:
    """What the page does, the slow way."""
    low, high, sure = np.frombuffer(zlib.decompress(maps), np.uint8).reshape(3, -1).astype(np.int64)
    units = np.cumsum(low + 256 * high) % 65536
    disparity = np.where(units == 0, np.nan, (units - 1) * step)
    return disparity.reshape(48, 64), (np.cumsum(sure) % 256).reshape(48, 64) / 255


def test_memory_stays_flat_over_many_frames_and_viewers(start: Start) -> None:
    rig = start()
    app = create_app(LIVE, rig.session)

    async def watch(first: int, last: int) -> None:
        for count in range(first, last):
            rig.show(count % 200 + 20)
            for after in (0, rig.session.version + 1):  # the second one leaves while it waits
                waiting = asyncio.ensure_future(rig.session.changed(after, 60))
                await asyncio.sleep(0)
                waiting.cancel()
            rig.session.shown.view()

    asyncio.run(watch(0, 50))
    tracemalloc.start()
    asyncio.run(watch(50, 100))
    early = tracemalloc.get_traced_memory()[0]
    asyncio.run(watch(100, 300))
    late = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert late - early < 10 * 48 * 64 * 11  # ten results of two hundred
    assert not rig.session._wakers
    assert app.state.service.live is rig.session


def test_a_recording_is_a_video_of_the_pairs(start: Start, tmp_path: Path) -> None:
    rig = start()
    app = create_app(LIVE, rig.session)
    status = ask(app, "POST", "/api/v1/live?recording=true").json()
    name = status["recording"]
    assert name.startswith("live-")
    for value in (20, 60, 100):
        rig.show(value)
    status = ask(app, "POST", "/api/v1/live?recording=false").json()
    assert (status["recording"], status["recorded"], status["recording_problem"]) == (None, name, None)
    frames = list(StereoVideo(tmp_path / name))
    assert [frame.left.shape for frame in frames] == [(48, 64, 3)] * 3
    assert [frame.right.mean() for frame in frames] == pytest.approx([20, 60, 100], abs=4)


def test_a_recording_is_complete_when_the_session_ends(start: Start, tmp_path: Path) -> None:
    rig = start()
    rig.session.record(True)
    rig.show(20)
    rig.camera.ended = True
    rig.session.close()
    assert rig.session.recorder.finished is not None
    assert len(list(StereoVideo(tmp_path / rig.session.recorder.finished))) == 1


def test_a_camera_that_hangs_is_told(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = start()
    assert rig.session.problem is None
    monkeypatch.setattr(live_module, "_SILENT_SECONDS", -1e6)
    assert re.fullmatch(r"No frame has come for \d+ seconds\.", rig.session.problem or "")


def test_a_recording_that_cannot_be_written_ends_and_says_why(start: Start) -> None:
    rig = start()
    rig.session.record(True)
    rig.show(20)
    rig.camera.shape = (96, 128, 3)
    rig.show(30)
    until(lambda: rig.session.recorder.problem is not None)
    assert "frames have 128×48 pixels" in (rig.session.recorder.problem or "")
    assert rig.session.recorder.name is None
    rig.show(40)


def view(app: FastAPI, after: int) -> tuple[dict[str, Any], bytes]:
    answer = ask(app, "GET", f"/api/v1/live/view?after={after}")
    assert answer.status_code == 200
    line, _, body = answer.content.partition(b"\n")
    return json.loads(line), body


def test_a_viewer_gets_each_frame_once_and_the_state_at_any_time(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aanet.web.live_api.WAIT_SECONDS", 0.05)
    rig = start(calibration=CAMERA)
    app = create_app(LIVE, rig.session)
    rig.show(50)
    facts, body = view(app, 0)
    assert (facts["width"], facts["height"], facts["live"]["frame"]) == (64, 48, 2)
    assert facts["camera"]["fx"] == 100
    disparity, _ = decode(facts["step"], body[facts["left"] :])
    assert np.allclose(disparity, 5, atol=2**-9)
    again, body = view(app, facts["version"])
    assert (again["version"], body) == (facts["version"], b"")
    rig.session.paused = True
    paused, body = view(app, facts["version"])
    assert paused["live"]["paused"]
    assert body == b""


def test_whoever_waits_is_answered_at_the_next_frame_and_when_the_server_stops(start: Start) -> None:
    rig = start()

    async def scenario() -> None:
        waiting = asyncio.ensure_future(rig.session.changed(rig.session.version, 600))
        await asyncio.sleep(0.01)
        rig.session.watch()
        rig.camera.deliver(20)
        await asyncio.wait_for(waiting, 20)
        waiting = asyncio.ensure_future(rig.session.changed(rig.session.version + 10, 600))
        await asyncio.sleep(0.01)
        rig.session.stop()
        await asyncio.wait_for(waiting, 20)
        await asyncio.wait_for(rig.session.changed(rig.session.version + 10, 600), 20)

    asyncio.run(scenario())


def test_the_newest_result_in_any_format_and_in_all(start: Start) -> None:
    rig = start(calibration=CAMERA)
    app = create_app(LIVE, rig.session)
    answer = ask(app, "GET", "/api/v1/live/result?format=depth.npy")
    depth = np.load(io.BytesIO(answer.content))
    assert np.allclose(depth, 100 * 0.1 / 1.0, rtol=1e-3)
    answer = ask(app, "GET", "/api/v1/live/result")
    assert answer.headers["content-disposition"] == 'attachment; filename="frame-1.zip"'
    names = zipfile.ZipFile(io.BytesIO(answer.content)).namelist()
    possible = [name for name, output in OUTPUTS.items() if output.needs != "check"]
    assert len(names) == len(possible)
    assert {"disparity.png", "depth.png", "points.ply", "summary.json"} <= set(names)
    for query, code in (("format=ppm", "wrong_parameter"), ("format=occlusion", "needs_check")):
        refused = ask(app, "GET", f"/api/v1/live/result?{query}")
        assert (refused.status_code, refused.json()["code"]) == (422, code)


def test_the_rules_of_access_are_those_of_the_server(start: Start) -> None:
    rig = start()
    app = create_app(replace(LIVE, token="s3cret"), rig.session)
    for method, path in (("GET", ""), ("POST", ""), ("GET", "/result"), ("GET", "/view")):
        assert ask(app, method, f"/api/v1/live{path}").status_code == 401
    known = {"Authorization": "Bearer s3cret"}
    assert ask(app, "GET", "/api/v1/live", headers=known).json()["frame"] == 1
    elsewhere = {**known, "Origin": "http://elsewhere.example"}
    assert ask(app, "POST", "/api/v1/live?paused=true", headers=elsewhere).status_code == 403
    assert not rig.session.paused
    rebound = {**known, "Host": "elsewhere.example"}
    assert ask(app, "GET", "/api/v1/live/view", headers=rebound).status_code == 400
    misspelled = ask(app, "POST", "/api/v1/live?pause=true", headers=known)
    assert (misspelled.status_code, misspelled.json()["code"]) == (422, "unknown_parameter")


def test_only_a_live_server_has_a_live_session(start: Start) -> None:
    plain, shown = create_app(IN_PROCESS), create_app(LIVE, start().session)
    assert ask(plain, "GET", "/api/v1/live").status_code == 404
    assert [ask(app, "GET", "/api/v1/models").json()["live"] for app in (plain, shown)] == [False, True]
    paths = ask(shown, "GET", "/api/v1/openapi.json").json()["paths"]
    assert {path for path in paths if "live" in path} == {"/api/v1/live", "/api/v1/live/result"}
