"""Two images in, a `StereoResult` out: pad, scale, tile, match, check from left to right."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

import cv2
import numpy as np

from aanet.engines.factory import open_engine
from aanet.engines.semi_global import left_right_difference
from aanet.errors import AanetError
from aanet.geometry.camera import StereoCamera
from aanet.inference.hints import InferenceHints
from aanet.inference.padding import padding_for
from aanet.inference.pair_checks import check_pair
from aanet.inference.postprocess import postprocess as apply_postprocessing
from aanet.inference.spec import Engine, Maps, NetworkSpec
from aanet.inference.tiling import Tile, bytes_per_pixel, match_in_tiles, tile_for
from aanet.io.images import AnyImage, as_rgb8, as_rgb_float, read_image
from aanet.result import StereoResult
from aanet.typing import FloatMap, Mask

if TYPE_CHECKING:
    from aanet.engines.factory import Model

Source = AnyImage | str | os.PathLike[str]
TileChoice = Tile | tuple[int, int] | Literal["auto"] | None
Scale = float | Literal["auto"]
Postprocess = Literal["auto", "none", "all"]

OCCLUSION_THRESHOLD = 1.0  # pixels by which left and right disparity of a visible point may differ
_POSTPROCESSING = {"none": InferenceHints(), "all": InferenceHints(sharpen_edges=True, fill_border=True)}
RANGE_END_SHARE = 0.02  # of the pixels: more at the end of the range, and the range is too short


class StereoMatcher:
    """Matches rectified pairs of any size with one network on one engine.

    Example:
        matcher = StereoMatcher("aanet")
        result = matcher("left.png", "right.png")
        result.save("out", "disparity", "color")
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
    ) -> None:
        """Open a network.

        Args:
            model: A network of the zoo with bundled weights (default "aanet"), the name of bundled weights
                ("aanet:kitti15"), a file of weights, a file of `aanet export` (.onnx, .xml, .pt2), a network
                in memory, or "sgbm".
            weights: A file or name of weights instead of the model's own; "random" for tests and timing.
            engine: One of `aanet.engines.table.ENGINES`, as "openvino" or "torch"; None takes the fastest one
                here, or for an exported file the one that reads it.
            precision: "float32", "bf16" or "auto": bf16 if OpenVINO runs a file of weights, bf16 works here,
                and in a trial on a real pair, made once, it was faster and lost less than 0.02 pixels.
            max_disparity: Pixels to search; None takes what the weights were trained for.
            device: Of the engine torch ("cpu", "cuda", …); None takes the fastest one here.
            threads: On a CPU; None follows `OMP_NUM_THREADS`, or else takes every core.
        """
        self.engine: Engine = open_engine(
            model,
            weights=weights,
            engine=engine,
            precision=precision,
            max_disparity=max_disparity,
            device=device,
            threads=threads,
        )

    @classmethod
    def with_engine(cls, engine: Engine) -> StereoMatcher:
        """Match with an engine that is open already."""
        matcher = cls.__new__(cls)
        matcher.engine = engine
        return matcher

    @property
    def spec(self) -> NetworkSpec:
        """What the network is and needs."""
        return self.engine.spec

    def __call__(
        self,
        left: Source,
        right: Source,
        *,
        camera: StereoCamera | None = None,
        scale: Scale = "auto",
        check: bool = False,
        tile: TileChoice = "auto",
        postprocess: Postprocess = "auto",
        inspect: bool = True,
    ) -> StereoResult:
        """Match one pair.

        Args:
            left: RGB or gray, uint8, uint16 or float in 0 … 1; or the path of an image.
            right: The same for the right camera.
            camera: Geometry for depth and points.
            scale: Match at this many times the size; disparities are still in pixels of the given images.
                0.5 is four times as fast and reaches twice as far.  "auto" is 1, or more
                for small images if the weights recommend it.
            check: Also match from right to left, and mark what does not agree as occluded.
            tile: Height and width that the network sees at once; None: the whole image; "auto": the whole
                image if it needs at most half of the free memory.
            postprocess: "all" sharpens blurred edges and continues surfaces past the view of the right
                camera, "none" leaves the disparity as predicted, "auto" does what the weights recommend.
            inspect: Look for what commonly goes wrong with pairs, about 30 ms, and warn of it.
        """
        (result,) = self.batch(
            [(left, right)],
            camera=camera,
            scale=scale,
            check=check,
            tile=tile,
            postprocess=postprocess,
            inspect=inspect,
        )
        return result

    def batch(
        self,
        pairs: Sequence[tuple[Source, Source]],
        *,
        camera: StereoCamera | None = None,
        scale: Scale = "auto",
        check: bool = False,
        tile: TileChoice = "auto",
        postprocess: Postprocess = "auto",
        inspect: bool = True,
    ) -> list[StereoResult]:
        """Match several pairs; those of one size go through the network together.  Arguments as in a call."""
        if scale != "auto" and not 0 < scale <= 8:
            raise AanetError(f"The scale must be above 0 and at most 8; got {scale}.")
        if postprocess not in get_args(Postprocess):
            choices = ", ".join(get_args(Postprocess))
            raise AanetError(f"The postprocess option must be one of {choices}; got {postprocess!r}.")
        images = [(_load(left), _load(right)) for left, right in pairs]
        groups: dict[tuple[int, ...], list[int]] = {}
        for index, (left, right) in enumerate(images):
            _require_one_size(left, right)
            groups.setdefault(left.shape[:2], []).append(index)
        results: dict[int, StereoResult] = {}
        for indices in groups.values():
            group = [images[index] for index in indices]
            matched = self._match_group(group, scale, check, tile, postprocess)
            for index, result in zip(indices, matched, strict=True):
                result.camera = camera
                if inspect:
                    result.warnings[:0] = [finding.message for finding in check_pair(*images[index])]
                results[index] = result
        return [results[index] for index in range(len(images))]

    def _match_group(
        self,
        pairs: list[tuple[AnyImage, AnyImage]],
        scale: Scale,
        check: bool,
        tile: TileChoice,
        postprocess: Postprocess,
    ) -> list[StereoResult]:
        """Results of pairs of one size."""
        start = time.perf_counter()
        if scale == "auto":
            scale = self.spec.hints.scale_for(pairs[0][0].shape[1])
        hints = _POSTPROCESSING.get(postprocess, self.spec.hints)
        left, right = (
            np.stack([as_rgb_float(pair[side]).transpose(2, 0, 1) for pair in pairs]) for side in (0, 1)
        )  # [B, 3, H, W]
        disparity, confidence = self._match_scaled(left, right, scale, tile)
        disparity = apply_postprocessing(disparity, hints)
        mirrored: FloatMap | None = None
        if check:
            # Mirrored, the right camera stands where the left one stood.
            mirrored, _ = self._match_scaled(right[..., ::-1], left[..., ::-1], scale, tile)
            mirrored = np.ascontiguousarray(apply_postprocessing(mirrored, hints)[..., ::-1])
        seconds = (time.perf_counter() - start) / len(pairs)
        results = []
        for index, (original, _) in enumerate(pairs):
            on_right = None if mirrored is None else mirrored[index]
            results.append(
                StereoResult(
                    disparity=disparity[index],
                    confidence=confidence[index],
                    left=as_rgb8(original),
                    right_disparity=on_right,
                    occlusion=None if on_right is None else occluded(disparity[index], on_right),
                    warnings=_range_warning(disparity[index], self.spec, scale),
                    seconds=seconds,
                    model=self.spec.name,
                    engine=self.engine.description,
                )
            )
        return results

    def _match_scaled(self, left: FloatMap, right: FloatMap, scale: float, tile: TileChoice) -> Maps:
        """Match at another size; disparities come back in pixels of the given images."""
        height, width = left.shape[2:]
        size = (max(round(height * scale), 1), max(round(width * scale), 1))
        if size == (height, width):
            return self._match_fitting(left, right, tile)
        disparity, confidence = self._match_fitting(_resize(left, size), _resize(right, size), tile)
        disparity, confidence = (_resize(maps, (height, width)) for maps in (disparity, confidence))
        return disparity * np.float32(width / size[1]), confidence

    def _match_fitting(self, left: FloatMap, right: FloatMap, tile: TileChoice) -> Maps:
        """Match the whole image, or tiles of it, as many at once as fit the memory."""
        batch, _, height, width = left.shape
        available = self.engine.available_memory()
        if tile == "auto":
            tile = tile_for(self.spec, height, width, available)
        if tile is not None:
            pieces = Tile(*tile)
            return match_in_tiles(self._match_padded, left, right, self.spec, pieces)
        at_once = max(int(available / (2 * bytes_per_pixel(self.spec, width) * height * width)), 1)
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


def _load(image: Source) -> AnyImage:
    if isinstance(image, str | os.PathLike):
        return read_image(image)
    return np.asarray(image)


def _require_one_size(left: AnyImage, right: AnyImage) -> None:
    if left.shape[:2] != right.shape[:2]:
        sizes = [" × ".join(str(side) for side in image.shape[1::-1]) for image in (left, right)]
        raise AanetError(
            f"The left image has {sizes[0]} pixels, the right one {sizes[1]}; a rectified pair has one size."
        )


def _resize(maps: FloatMap, size: tuple[int, int]) -> FloatMap:
    """Resize [..., h, w] to [..., H, W]: by areas to a smaller size, bilinearly to a larger one."""
    method = cv2.INTER_AREA if size[0] < maps.shape[-2] else cv2.INTER_LINEAR
    flat = maps.reshape(-1, *maps.shape[-2:])
    resized = [cv2.resize(one, (size[1], size[0]), interpolation=method) for one in flat]
    return np.stack(resized).reshape(*maps.shape[:-2], *size).astype(np.float32)


def _range_warning(disparity: FloatMap, spec: NetworkSpec, scale: float) -> list[str]:
    """Say so when the search range ends before the scene does: within its last candidate lie too many pixels.

    The expectation over candidates cannot pass the last one, which lies one step below the maximum.
    """
    end = (spec.max_disparity - 2 * spec.candidate_step) / scale
    share = float(np.mean(disparity >= end))
    if share <= RANGE_END_SHARE:
        return []
    reach = spec.max_disparity / scale
    return [
        f"{100 * share:.0f} % of the pixels lie at the end of the search range of {reach:.0f} pixels: "
        f"something is probably nearer; use a larger maximum disparity, or match at a scale of {scale / 2:g}."
    ]
