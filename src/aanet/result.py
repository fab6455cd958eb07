"""What a matcher returns: the disparity and everything that follows from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from aanet.errors import AanetError
from aanet.geometry.camera import StereoCamera
from aanet.io.images import PathLike
from aanet.typing import FloatMap, Image, Mask

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass
class StereoResult:
    """A dense disparity map and what is known about it, all on the grid of the left image.

    Attributes:
        disparity: Float32 [H, W] in pixels, `left(x)` matches `right(x - d)`.
        confidence: Float32 [H, W] in 0 … 1, how much of the score distribution stands at the prediction.
        left: The left image, uint8 RGB [H, W, 3].
        right_disparity: Float32 [H, W] on the grid of the right image, `right(x)` matches `left(x + d)`;
            None unless the left-right check was asked for.
        occlusion: True where the left-right check fails: the pixel is hidden in the right image, lies
            outside it, or is matched wrongly; None unless the check was asked for.
        warnings: Plain sentences about the pair and the result.
        camera: The geometry that `depth` and `points` use by default.
        seconds: What matching took, without reading and checking the images.
        model: Name of the network, or "sgbm".
        engine: What computed it.
    """

    disparity: FloatMap
    confidence: FloatMap
    left: Image
    right_disparity: FloatMap | None = None
    occlusion: Mask | None = None
    warnings: list[str] = field(default_factory=list)
    camera: StereoCamera | None = None
    seconds: float = 0.0
    model: str = ""
    engine: str = ""

    def depth(self, camera: StereoCamera | None = None) -> FloatMap:
        """Meters along the optical axis, [H, W]; NaN at infinity."""
        return self._camera(camera, "Depth").depth(self.disparity)

    def points(self, camera: StereoCamera | None = None) -> FloatMap:
        """Meters in the frame of the left camera, [H, W, 3]: X right, Y down, Z forward; NaN at infinity."""
        return self._camera(camera, "A point cloud").points(self.disparity)

    def save(self, folder: PathLike, *what: str, name: str | None = None) -> list[Path]:
        """Write parts of the result, each whole or not at all.

        Args:
            folder: Where; made if need be.
            what: Names from `OUTPUTS`, "disparity" and "color" if none is given.  A suffix chooses another
                format than the first one listed there, as in "disparity.pfm".
            name: What file names begin with: `save("out", "color", name="left")` writes `left_color.png`.

        Returns:
            The files, in the order of `what`.
        """
        written = []
        for output in what or ("disparity", "color"):
            file = file_name(output)
            path = Path(folder) / (file if name is None else f"{name}_{file}")
            _WRITERS[output.partition(".")[0]](self, path)
            written.append(path)
        return written

    def plot(self) -> Figure:
        """Return a matplotlib figure of the left image, the disparity and the confidence."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(15, 4), layout="constrained")
        pictures, color, sure = figure.subplots(1, 3)
        pictures.imshow(self.left)
        shown = color.imshow(self.disparity, cmap="turbo")
        figure.colorbar(shown, ax=color, label="pixels", shrink=0.8)
        shown = sure.imshow(self.confidence, cmap="gray", vmin=0, vmax=1)
        figure.colorbar(shown, ax=sure, shrink=0.8)
        titles = ("Left image", f"Disparity ({self.model})", "Confidence")
        for axes, title in zip((pictures, color, sure), titles, strict=True):
            axes.set_title(title)
            axes.set_axis_off()
        return figure

    def _camera(self, camera: StereoCamera | None, what: str) -> StereoCamera:
        chosen = camera or self.camera
        if chosen is None:
            raise AanetError(f"{what} needs a camera: give a calibration (camera=, or --calib FILE).")
        return chosen


# Every part that can be saved, with the suffixes it can have; the first is the default.
OUTPUTS = {
    "disparity": (".png", ".pfm", ".npy", ".npz"),
    "color": (".png", ".jpg"),
    "depth": (".png", ".npy", ".exr"),
    "depth_color": (".png", ".jpg"),
    "ply": (".ply",),
    "confidence": (".png", ".npy"),
    "occlusion": (".png",),
    "right_disparity": (".png", ".pfm", ".npy", ".npz"),
    "panel": (".png", ".jpg"),
}
NEEDS_CAMERA = frozenset({"depth", "depth_color", "ply"})
NEEDS_CHECK = frozenset({"occlusion", "right_disparity"})


def file_name(output: str) -> str:
    """Return "disparity.png" for "disparity", "disparity.pfm" for itself, and "points.ply" for "ply"."""
    kind, _, suffix = output.partition(".")
    if kind not in OUTPUTS:
        raise AanetError(f"There is nothing called {output!r} to save; known: {', '.join(OUTPUTS)}.")
    chosen = f".{suffix}" if suffix else OUTPUTS[kind][0]
    if chosen not in OUTPUTS[kind]:
        raise AanetError(f"{kind} is saved as {', '.join(OUTPUTS[kind])}; got {output!r}.")
    return ("points" if kind == "ply" else kind) + chosen


def _save_disparity(result: StereoResult, path: Path) -> None:
    from aanet.io.disparity import write_disparity

    write_disparity(path, result.disparity)


def _save_color(result: StereoResult, path: Path) -> None:
    from aanet import viz
    from aanet.io.images import write_image

    low, high = viz.value_range(result.disparity)
    write_image(path, viz.with_scale_bar(viz.colorize_disparity(result.disparity), low, high, "px"))


def _save_depth(result: StereoResult, path: Path) -> None:
    from aanet.io.disparity import write_depth

    write_depth(path, result.depth())


def _save_depth_color(result: StereoResult, path: Path) -> None:
    from aanet import viz
    from aanet.io.images import write_image

    depth = result.depth()
    low, high = viz.value_range(depth)
    write_image(path, viz.with_scale_bar(viz.colorize_depth(depth), low, high, "m"))


def _save_ply(result: StereoResult, path: Path) -> None:
    from aanet.io.points import write_ply

    write_ply(path, result.points(), result.left)


def _save_confidence(result: StereoResult, path: Path) -> None:
    from aanet.io.atomic import atomic_path
    from aanet.io.images import write_image

    if path.suffix == ".npy":
        with atomic_path(path) as temporary:
            np.save(temporary, result.confidence)
    else:
        write_image(path, np.rint(result.confidence * 255).astype(np.uint8))


def _save_occlusion(result: StereoResult, path: Path) -> None:
    from aanet.io.images import write_image

    if result.occlusion is None:
        raise AanetError("The occlusion needs the left-right check: ask for it (check=True, or --check).")
    write_image(path, result.occlusion.astype(np.uint8) * 255)


def _save_right_disparity(result: StereoResult, path: Path) -> None:
    from aanet.io.disparity import write_disparity

    if result.right_disparity is None:
        raise AanetError("The right disparity needs the left-right check (check=True, or --check).")
    write_disparity(path, result.right_disparity)


def _save_panel(result: StereoResult, path: Path) -> None:
    from aanet import viz
    from aanet.io.images import write_image

    sure = np.repeat(np.rint(result.confidence * 255).astype(np.uint8)[..., None], 3, axis=2)
    images = [result.left, viz.colorize_disparity(result.disparity), sure]
    titles = ["Left image", f"Disparity ({result.model})", "Confidence"]
    if result.occlusion is not None:
        hidden = np.where(result.occlusion[..., None], np.uint8(0), images[1])
        images.append(hidden.astype(np.uint8))
        titles.append("Disparity, occlusions black")
    write_image(path, viz.panel(images, titles, columns=2 if len(images) == 4 else 3))


_WRITERS: dict[str, Callable[[StereoResult, Path], None]] = {
    "disparity": _save_disparity,
    "color": _save_color,
    "depth": _save_depth,
    "depth_color": _save_depth_color,
    "ply": _save_ply,
    "confidence": _save_confidence,
    "occlusion": _save_occlusion,
    "right_disparity": _save_right_disparity,
    "panel": _save_panel,
}
