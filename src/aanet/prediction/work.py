"""What is done with one pair: match it, encode its outputs and write them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from aanet import outputs
from aanet.prediction.outcome import Done

if TYPE_CHECKING:
    from aanet.geometry.rectification import Calibration
    from aanet.inference.options import MatchOptions
    from aanet.inference.save_options import SaveOptions
    from aanet.io.images import AnyImage
    from aanet.io.storage import Storage
    from aanet.matcher import StereoMatcher
    from aanet.result import StereoResult


@dataclass(frozen=True)
class Work:
    """A matcher, and what becomes of its results.

    Attributes:
        matcher: The matcher.
        storage: Where the files are written.
        outputs: The outputs that are files of single pairs.
        calibration: Of raw images, or for depth.
        options: The options of the match.
        saving: The options of the outputs.
        replace: Whether existing files are replaced; otherwise one of them is an error.
    """

    matcher: StereoMatcher
    storage: Storage
    outputs: tuple[str, ...]
    calibration: Calibration | None
    options: MatchOptions
    saving: SaveOptions
    replace: bool

    def file_names(self, name: str) -> list[str]:
        """The files of one pair, in the storage."""
        return [f"{name}_{outputs.find(output).file_name}" for output in self.outputs]

    def match(self, images: tuple[AnyImage, AnyImage]) -> StereoResult:
        """Match one pair."""
        return self.matcher(*images, calibration=self.calibration, options=self.options)

    def save(self, name: str, result: StereoResult) -> Done:
        """Write the files of one pair, all together, and describe it."""
        # All are encoded before anything is written.
        contents = [outputs.encode(result, output, self.saving) for output in self.outputs]
        files = self.file_names(name)
        if files:
            self.storage.write_together(dict(zip(files, contents, strict=True)), self.replace)
        height, width = result.disparity.shape
        return Done(
            name,
            [self.storage.location(file) for file in files],
            result.seconds,
            warnings=result.warnings,
            notes=result.notes,
            camera=None if result.camera is None else asdict(result.camera),
            time=result.time,
            width=width,
            height=height,
            mean_confidence=float(result.confidence.mean()),
            written_bytes=sum(map(len, contents)),
            processing=None if result.processing is None else result.processing.as_dict(),
        )
