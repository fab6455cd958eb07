"""The result of a match: disparity, confidence, and what follows from them."""

from __future__ import annotations

import dataclasses
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aanet import outputs
from aanet.errors import InputError, OptionError
from aanet.geometry import measurement
from aanet.geometry.camera import StereoCamera
from aanet.geometry.measurement import Length
from aanet.inference.flying_pixels import flying_pixels as find_flying_pixels
from aanet.inference.processing import Processing
from aanet.inference.save_options import SaveOptions, require_filter
from aanet.io.atomic import write_together
from aanet.io.images import PathLike
from aanet.typing import FloatMap, Image, Mask

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(eq=False, repr=False)
class StereoResult:
    """A dense disparity map with its confidence, on the grid of the left image.

    Attributes:
        disparity: Float32 [H, W] in pixels, `left(x)` matches `right(x - d)`.
        confidence: Float32 [H, W] in 0 … 1, the share of the score distribution near the prediction.
        left: The left image, uint8 RGB [H, W, 3], rectified if the pair was raw.
        right: The right image likewise; None if the result was made without it.
        right_disparity: Float32 [H, W] on the grid of the right image, `right(x)` matches `left(x + d)`;
            None without the left-right check.
        occlusion: True where the left-right check fails: the pixel is occluded in the right image, outside of
            it, or matched wrongly; None without the check.
        warnings: Sentences about causes of a wrong result, such as a pair that is not rectified.
        notes: Sentences about how the images are stored (gray, 16 bits, alpha), which does not affect it.
        camera: The camera that `depth` and `points` use by default.
        seconds: Time of the matching, without reading and checking the images.
        time: Of a frame, in seconds since the beginning of the video; None for a still pair.
        model: Name of the network or classical matcher.
        engine: Description of the engine that computed it.
        processing: What was done to the images and to the disparity; None if it is not known.
    """

    disparity: FloatMap
    confidence: FloatMap
    left: Image
    right: Image | None = None
    right_disparity: FloatMap | None = None
    occlusion: Mask | None = None
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    camera: StereoCamera | None = None
    seconds: float = 0.0
    time: float | None = None
    model: str = ""
    engine: str = ""
    processing: Processing | None = None

    def depth(
        self,
        camera: StereoCamera | None = None,
        *,
        min_confidence: float = 0.0,
        max_depth: float = np.inf,
    ) -> FloatMap:
        """Meters along the optical axis, [H, W]; NaN at infinity.

        Args:
            camera: Another camera than that of the result.
            min_confidence: NaN where the confidence is lower, 0 … 1.
            max_depth: NaN where the depth is larger, in meters.
        """
        require_filter(min_confidence, max_depth)
        depth = self._camera(camera, "Depth").depth(self.disparity)
        keep = (self.confidence >= min_confidence) & (depth <= max_depth)
        return np.where(keep, depth, np.float32(np.nan))

    def points(self, camera: StereoCamera | None = None) -> FloatMap:
        """Points in meters in the frame of the left camera, [H, W, 3]: X right, Y down, Z forward; or NaN."""
        return self._camera(camera, "A point cloud").points(self.disparity)

    def cloud(
        self,
        *,
        min_confidence: float = 0.0,
        max_depth: float = np.inf,
        flying_pixels: bool = False,
        visible_only: bool = False,
        camera: StereoCamera | None = None,
    ) -> tuple[FloatMap, Image]:
        """Points [N, 3] in meters and their RGB [N, 3], for Open3D or `aanet.io.points.write_ply`.

        Points at infinity are omitted.

        Args:
            min_confidence: Omit points of lower confidence, 0 … 1.
            max_depth: Omit points that are farther away, in meters.
            flying_pixels: Keep points at edges whose disparity lies between two surfaces.
            visible_only: Omit pixels that the left-right check marks as occluded.
            camera: Another camera than that of the result.
        """
        depth = self.depth(camera, min_confidence=min_confidence, max_depth=max_depth)
        keep = np.isfinite(depth)
        if not flying_pixels:
            keep &= ~find_flying_pixels(self.disparity)
        if visible_only:
            if self.occlusion is None:
                raise InputError("visible_only needs the left-right check: match with check=True.")
            keep &= ~self.occlusion
        return self.points(camera)[keep], self.left[keep]

    def depth_at(self, x: float, y: float) -> Length:
        """The depth of a pixel in meters with its standard deviation, which `disparity_noise` explains."""
        camera = self._camera(None, "Depth")
        return measurement.depth_at(camera, self.disparity, self.confidence, (x, y))

    def distance(self, first: tuple[float, float], second: tuple[float, float]) -> Length:
        """The distance in meters of the points of two pixels (x, y), with its standard deviation.

        Errors of the calibration are not part of it.
        """
        camera = self._camera(None, "A distance")
        return measurement.distance(camera, self.disparity, self.confidence, first, second)

    def save(
        self,
        folder: PathLike,
        *what: str,
        name: str | None = None,
        overwrite: bool = True,
        **options: Any,
    ) -> list[Path]:
        """Write outputs to files; those of two processes that save at once are not mixed.

        Args:
            folder: The folder, which is created if it does not exist; or the name of one file to write, such
                as "scene.ply".
            what: Names from `aanet.outputs.OUTPUTS`; by default "disparity" and "color".  A suffix chooses
                another format than the first one listed there, as in "disparity.pfm".
            name: Beginning of the file names: `save("out", "color", name="left")` writes `left_color.png`.
            overwrite: Whether to replace existing files; otherwise one of them is a `WriteError`.
            options: Those of `SaveOptions`, such as `min_confidence=0.5` or `range="0.5:10m"`.

        Returns:
            The files, in the order of `what`.
        """
        target, chosen = Path(folder), SaveOptions.of(options)
        by_suffix = outputs.for_suffix(target.suffix)
        if by_suffix is not None and name is None and not target.is_dir():
            return [self._save_file(target, chosen, overwrite, *(what or (by_suffix,)))]
        wanted = what or ("disparity", "color")
        files = [outputs.find(output).file_name for output in wanted]
        paths = [target / (file if name is None else f"{name}_{file}") for file in files]
        contents = [outputs.encode(self, output, chosen) for output in wanted]  # before anything is written
        write_together(target, dict(zip(paths, contents, strict=True)), overwrite)
        return paths

    def _save_file(self, path: Path, options: SaveOptions, overwrite: bool, *what: str) -> Path:
        if len(what) != 1:
            raise InputError(f"{path} is the name of one file; got {len(what)} outputs to save there.")
        (output,) = what
        if outputs.find(output).type.suffix != path.suffix:
            output = output.partition(".")[0] + path.suffix
        write_together(path.parent, {path: outputs.encode(self, output, options)}, overwrite)
        return path

    def summary(self) -> dict[str, Any]:
        """The result in numbers, for JSON: ranges, confidence, warnings, camera."""
        height, width = self.disparity.shape
        return {
            "model": self.model,
            "engine": self.engine,
            "width": width,
            "height": height,
            "seconds": self.seconds,
            "warnings": self.warnings,
            "notes": self.notes,
            "disparity_px": _spread(self.disparity),
            "depth_m": None if self.camera is None else _spread(self.depth()),
            "mean_confidence": float(self.confidence.mean()),
            "occluded_share": None if self.occlusion is None else float(self.occlusion.mean()),
            "camera": None if self.camera is None else dataclasses.asdict(self.camera),
        }

    def plot(self, *what: str) -> Figure:
        """Return a matplotlib figure, which a notebook displays.

        Args:
            what: "left", "disparity", "depth", "confidence" or "occlusion"; by default all that the result
                has except "occlusion".
        """
        from aanet.viz.panels import ticks

        maps = self._plotted()
        for each in what:
            if each not in maps:
                raise InputError(f"This result cannot plot {each!r}; it has {', '.join(maps)}.")
        chosen = [maps[each] for each in what or [each for each in maps if each != "occlusion"]]
        figure = _notebook_figure(5 * len(chosen), 4)
        columns = figure.subplots(1, len(chosen), squeeze=False)[0]
        for axes, (title, values, unit, options) in zip(columns, chosen, strict=True):
            shown = axes.imshow(values, **options)
            if unit is not None:
                bar = figure.colorbar(shown, ax=axes, label=unit, shrink=0.8)
                if unit == "meters":  # plain numbers, not powers of ten
                    low, high = shown.get_clim()
                    values = ticks(low, high, "m", 6)
                    bar.set_ticks(values, labels=[f"{value:g}" for value in values])
                    bar.minorticks_off()
            axes.set_title(title)
            axes.set_axis_off()
        return figure

    def _plotted(self) -> dict[str, tuple[str, Any, str | None, dict[str, Any]]]:
        """What `plot` can draw: title, values, unit of the color bar, and arguments of `imshow`."""
        from matplotlib.colors import LogNorm

        from aanet.viz import value_range

        gray = {"cmap": "gray", "vmin": 0, "vmax": 1}
        maps: dict[str, tuple[str, Any, str | None, dict[str, Any]]] = {
            "left": ("Left image", self.left, None, {}),
            "disparity": (f"Disparity ({self.model})", self.disparity, "pixels", {"cmap": "turbo"}),
        }
        if self.camera is not None:
            depth = self.depth()
            near_is_red = {"cmap": "turbo_r", "norm": LogNorm(*value_range(depth))}
            maps["depth"] = ("Depth", depth, "meters", near_is_red)
        maps["confidence"] = ("Confidence", self.confidence, "", gray)
        if self.occlusion is not None:
            maps["occlusion"] = ("Occlusion", self.occlusion, None, gray)
        return maps

    def __repr__(self) -> str:
        summary = self.summary()
        parts = [f"{summary['width']}×{summary['height']}"]
        for name, unit in (("disparity_px", "px"), ("depth_m", "m")):
            if (spread := summary[name]) is not None:
                low, high = spread["minimum"], spread["maximum"]
                parts.append(f"{name.partition('_')[0]} {low:.3g}–{high:.3g} {unit}")
        parts.append(f"confidence {summary['mean_confidence']:.2f}")
        parts += [self.model] if self.model else []
        count = len(self.warnings)
        parts.append(f"{count or 'no'} warning{'' if count == 1 else 's'}")
        return f"StereoResult({', '.join(parts)})"

    def _repr_png_(self) -> bytes:
        """The picture that a notebook displays."""
        return outputs.encode(self, "color.png")

    def _camera(self, camera: StereoCamera | None, what: str) -> StereoCamera:
        chosen = camera or self.camera
        if chosen is None:
            raise OptionError(f"{what} needs a calibration", "give {calibration}")
        return chosen


def _spread(values: FloatMap) -> dict[str, float] | None:
    known = values[np.isfinite(values)]
    if not known.size:
        return None
    return {
        "minimum": float(known.min()),
        "median": float(np.median(known)),
        "maximum": float(known.max()),
    }


def _notebook_figure(width: float, height: float) -> Figure:
    """A figure that a notebook displays without pyplot, which would keep it in memory."""
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png")
            return buffer.getvalue()

    return NotebookFigure(figsize=(width, height), layout="constrained")
