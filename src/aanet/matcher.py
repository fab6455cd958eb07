"""The matcher: from two images to a `StereoResult`, with padding, scaling, tiling and checks."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from aanet.engines.factory import open_engine
from aanet.errors import InputError
from aanet.geometry.rectification import Calibration
from aanet.inference.consistency import left_right_difference
from aanet.inference.options import MatchOptions
from aanet.inference.padding import padding_for
from aanet.inference.postprocess import postprocess
from aanet.inference.preparation import AnyCalibration, PreparedPair, Source, as_calibration, prepare_pair
from aanet.inference.processing import Processing, plan
from aanet.inference.resizing import resize_planes
from aanet.inference.spec import MAX_DISPARITY, Engine, Maps, NetworkSpec
from aanet.inference.temporal import TemporalFilter
from aanet.inference.tiling import Tile, bytes_per_pixel, match_in_tiles
from aanet.io.frames import FrameSource, StereoFrame, StereoVideo
from aanet.io.images import as_rgb8, as_rgb_float
from aanet.io.newest import NewestFrames
from aanet.result import StereoResult
from aanet.typing import FloatMap, Mask

if TYPE_CHECKING:
    from aanet.engines.factory import Model, NetworkSpecSource

_MAX_THREADS = 1024
OCCLUSION_THRESHOLD = 1.0  # largest difference in pixels of the left and right disparity of a visible point
RANGE_END_SHARE = 0.02  # share of the pixels at the end of the range above which it is too short


class StereoMatcher:
    """Matches rectified pairs of any size with one network on one engine.

    Example:
        matcher = StereoMatcher()
        result = matcher("left.png", "right.png")
        result.save("out", "disparity", "color")

    A raw pair is rectified first: `matcher("left.png", "right.png", calibration="stereo.yml")`.
    """

    def __init__(
        self,
        model: Model | None = None,
        *,
        weights: str | os.PathLike[str] | None = None,
        engine: str | None = None,
        precision: str = "auto",
        max_disparity: int | None = None,
        device: str | None = None,
        threads: int | None = None,
        network_spec: NetworkSpecSource | None = None,
    ) -> None:
        """Open a network.

        Args:
            model: A network with bundled weights (by default "aanet_fast"), the name of bundled weights
                ("aanet:kitti15"), a weight file, a file of `aanet export` (.onnx, .xml), a network that
                another program wrote (.onnx, .xml, .pb), a network in memory, or a matcher without learning:
                "sgbm" or "cross-scale".
            weights: A weight file or the name of bundled weights, instead of the model's own; "random" for
                tests and benchmarks.
            engine: One of `aanet.engines.table.ENGINES`, such as "openvino"; by default the fastest
                one on this machine, or the one that reads an exported file.
            precision: "float32", "bf16" or "auto".  The latter is bf16 if OpenVINO runs a weight file, bf16
                works on this machine, and a test on a real pair, which is made once, was faster and changed
                the error by less than 0.02 pixels.
            max_disparity: Pixels to search; by default as the weights were trained.
            device: Device of the engine torch ("cpu", "cuda", …); by default the fastest one.
            threads: Number of CPU threads; by default `OMP_NUM_THREADS`, or one per core.
            network_spec: How to feed and read a network that another program wrote: a TOML file, the name of
                a ready-made spec, or a `ForeignSpec`; by default the TOML file beside it, or what is found
                by trying (`aanet inspect` shows it).
        """
        limits = (("max_disparity", max_disparity, MAX_DISPARITY), ("threads", threads, _MAX_THREADS))
        for name, value, most in limits:
            if value is not None and not (isinstance(value, int | np.integer) and 1 <= value <= most):
                raise InputError(f"{name} must be a whole number from 1 to {most}; got {value!r}.")
        self.engine: Engine = open_engine(
            model,
            weights=weights,
            engine=engine,
            precision=precision,
            max_disparity=max_disparity,
            device=device,
            threads=threads,
            network_spec=network_spec,
        )

    @classmethod
    def with_engine(cls, engine: Engine) -> StereoMatcher:
        """Make a matcher with an engine that is already open."""
        matcher = cls.__new__(cls)
        matcher.engine = engine
        return matcher

    @property
    def spec(self) -> NetworkSpec:
        """The properties of the network."""
        return self.engine.spec

    def __repr__(self) -> str:
        return f"StereoMatcher({self.spec.name}, {self.spec.max_disparity} px; {self.engine.description})"

    def __call__(
        self,
        left: Source,
        right: Source,
        *,
        calibration: AnyCalibration | None = None,
        options: MatchOptions | None = None,
        **changes: Any,
    ) -> StereoResult:
        """Match one pair.

        Args:
            left: RGB or gray, uint8, uint16 or float in 0 … 1; or the path of an image.
            right: The same for the right camera.
            calibration: The calibration, for depth and points: the result of `aanet.load_calibration`, its
                file, or the camera of a rectified pair.  A raw pair is rectified first.
            options: The options of the match.
            changes: Single options by name, such as `scale=0.5`; `MatchOptions` describes them.
        """
        (result,) = self.batch([(left, right)], calibration=calibration, options=options, **changes)
        return result

    def batch(
        self,
        pairs: Sequence[tuple[Source, Source]],
        *,
        calibration: AnyCalibration | None = None,
        options: MatchOptions | None = None,
        **changes: Any,
    ) -> list[StereoResult]:
        """Match several pairs, in batches of one size; the arguments are those of a call."""
        options = MatchOptions.of(options, changes)
        known = None if calibration is None else as_calibration(calibration)
        prepared = [prepare_pair(left, right, known, options) for left, right in pairs]
        groups: dict[tuple[int, ...], list[int]] = {}
        for index, pair in enumerate(prepared):
            groups.setdefault(pair.left.shape[:2], []).append(index)
        results: dict[int, StereoResult] = {}
        for indices in groups.values():
            matched = self._match_group([prepared[index] for index in indices], options)
            results.update(zip(indices, matched, strict=True))
        return [results[index] for index in range(len(prepared))]

    def stream(
        self,
        source: FrameSource | Iterable[StereoFrame | tuple[Source, Source]],
        right: FrameSource | None = None,
        *,
        calibration: AnyCalibration | None = None,
        temporal: float | None = None,
        options: MatchOptions | None = None,
        **changes: Any,
    ) -> Iterator[StereoResult]:
        """Match the frames of a video, camera or network stream one at a time, and keep none of them.

        Of a camera or stream, each result is that of the newest frame; others are dropped. Only the first
        frame is checked for common mistakes, unless `strict=True`. An error of the source, such as a camera
        that is unplugged, is raised after the result of its last frame.

        Args:
            source: A video, the number of a camera, its device or the URL of a stream, with both views side
                by side unless `right` is given; or any frames or pairs, such as a `StereoVideo`.
            right: The video, camera or stream of the right view.
            calibration: As of a call.
            temporal: Weight of the new frame in an average along time, which reduces flicker; 0.4 is a good
                start, and None is no average.  See `TemporalFilter`.
            options: The options of the match.
            changes: Single options by name.
        """
        options = MatchOptions.of(options, changes)
        known = None if calibration is None else as_calibration(calibration)
        average = None if temporal is None else TemporalFilter(temporal)
        frames = source
        if isinstance(frames, str | os.PathLike | int):
            frames = StereoVideo(frames, right)
        elif right is not None:
            raise InputError("The right source goes with a video, camera or stream; pairs have both sides.")
        return self._stream(frames, known, average, options)

    def _stream(
        self,
        frames: Iterable[StereoFrame | tuple[Source, Source]],
        calibration: Calibration | None,
        average: TemporalFilter | None,
        options: MatchOptions,
    ) -> Iterator[StereoResult]:
        if isinstance(frames, StereoVideo) and frames.live:
            video = frames
            frames = NewestFrames(lambda: video)
        for frame in frames:
            result = self(frame[0], frame[1], calibration=calibration, options=options)
            result.time = frame.time if isinstance(frame, StereoFrame) else None
            if average is not None:
                result.disparity = average(result.disparity)
            options = replace(options, inspect=False)
            yield result

    def _match_group(self, pairs: list[PreparedPair], options: MatchOptions) -> list[StereoResult]:
        """Results of pairs of one size."""
        start = time.perf_counter()
        height, width = pairs[0].left.shape[:2]
        processing = plan(options, self.spec, height, width, self.engine.available_memory())
        left, right = (
            np.stack([as_rgb_float(image).transpose(2, 0, 1) for image in images])
            for images in ([pair.left for pair in pairs], [pair.right for pair in pairs])
        )  # [B, 3, H, W]
        disparity, confidence = self._match_scaled(left, right, processing)
        disparity = postprocess(disparity, processing)
        mirrored: FloatMap | None = None
        if options.check:
            # In the mirrored pair, the right image is the left one.
            mirrored, _ = self._match_scaled(right[..., ::-1], left[..., ::-1], processing)
            mirrored = np.ascontiguousarray(postprocess(mirrored, processing)[..., ::-1])
        seconds = (time.perf_counter() - start) / len(pairs)
        results = []
        for index, pair in enumerate(pairs):
            on_right = None if mirrored is None else mirrored[index]
            results.append(
                StereoResult(
                    disparity=disparity[index],
                    confidence=confidence[index],
                    left=as_rgb8(pair.left),
                    right=as_rgb8(pair.right),
                    right_disparity=on_right,
                    occlusion=None if on_right is None else occluded(disparity[index], on_right),
                    warnings=[
                        *pair.warnings,
                        *_range_warning(disparity[index], self.spec, processing.scale),
                    ],
                    notes=pair.notes,
                    camera=pair.camera,
                    seconds=seconds,
                    model=self.spec.name,
                    engine=self.engine.description,
                    processing=processing,
                )
            )
        return results

    def _match_scaled(self, left: FloatMap, right: FloatMap, processing: Processing) -> Maps:
        """Match at another size; disparities come back in pixels of the given images."""
        (height, width), size = left.shape[2:], processing.size
        if size == (height, width):
            return self._match_fitting(left, right, processing.tile)
        disparity, confidence = self._match_fitting(
            resize_planes(left, size), resize_planes(right, size), processing.tile
        )
        disparity, confidence = (resize_planes(maps, (height, width)) for maps in (disparity, confidence))
        return disparity * np.float32(width / size[1]), confidence

    def _match_fitting(self, left: FloatMap, right: FloatMap, tile: Tile | None) -> Maps:
        """Match tiles, or the whole images, as many at once as fit the memory."""
        if tile is not None:
            return match_in_tiles(self._match_padded, left, right, self.spec, tile)
        batch, _, height, width = left.shape
        needed = 2 * bytes_per_pixel(self.spec, width) * height * width
        at_once = max(int(self.engine.available_memory() / needed), 1)
        parts = [
            self._match_padded(left[first : first + at_once], right[first : first + at_once])
            for first in range(0, batch, at_once)
        ]
        disparities, confidences = zip(*parts, strict=True)
        return np.concatenate(disparities), np.concatenate(confidences)

    def _match_padded(self, left: FloatMap, right: FloatMap) -> Maps:
        height, width = left.shape[2:]
        padding = padding_for(height, width, self.spec.sizes)
        maps = self.engine(padding.pad(left), padding.pad(right))
        disparity, confidence = (np.ascontiguousarray(padding.crop(each)) for each in maps)
        return disparity, confidence


def occluded(disparity: FloatMap, right_disparity: FloatMap) -> Mask:
    """True where the match of a left pixel is not matched back to within `OCCLUSION_THRESHOLD`."""
    return left_right_difference(disparity, right_disparity) > OCCLUSION_THRESHOLD


def _range_warning(disparity: FloatMap, spec: NetworkSpec, scale: float) -> list[str]:
    """Warn if many disparities are at the end of the search range, which is then probably too short.

    The regressed disparity cannot exceed the last candidate, which is one step below the maximum.
    """
    end = (spec.max_disparity - 2 * spec.candidate_step) / scale
    share = float(np.mean(disparity >= end))
    if share <= RANGE_END_SHARE:
        return []
    reach = spec.max_disparity / scale
    return [
        f"{100 * share:.0f} % of the pixels are at the end of the search range of {reach:.0f} pixels, which "
        f"is probably too short; use a larger maximum disparity, or match at a scale of {scale / 2:g}."
    ]
