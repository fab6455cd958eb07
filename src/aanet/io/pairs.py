"""Find pairs: files, folders, patterns, a CSV file, or the frames of videos, cameras and streams."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from aanet.errors import InputError
from aanet.io.frames import StereoFrame, StereoVideo, frame_source_kind
from aanet.io.images import IMAGE_SUFFIXES, AnyImage, read_image
from aanet.io.tables import read_table

# Words in the names of files and folders that mark the left and the right side.
_SIDES = (
    *(("left", "right"), ("image_2", "image_3"), ("image_02", "image_03")),
    *(("im0", "im1"), ("view1", "view5"), ("cam0", "cam1"), ("l", "r")),
)


@dataclass(frozen=True)
class Pair:
    """A pair to match; `load` reads its images."""

    name: str  # the beginning of the names of its output files; may contain "/"
    load: Callable[[], tuple[AnyImage, AnyImage]] = field(repr=False)
    time: float | None = None  # of a frame, in seconds since the beginning of the recording


@dataclass
class Pairs:
    """The pairs that were found, in order."""

    pairs: Callable[[], Iterator[Pair]]
    total: int | None  # None for a video that does not state its length
    unmatched: list[str] = field(default_factory=list)  # files of one side without a partner
    name: str = "pairs"  # of a file with the results of all pairs
    video: StereoVideo | None = None  # the pairs are frames of it

    def __iter__(self) -> Iterator[Pair]:
        return self.pairs()

    def sample(self, count: int) -> Iterator[tuple[AnyImage, AnyImage]]:
        """Images of up to `count` pairs, evenly distributed; of a camera only the first frame."""
        if self.video is not None:
            yield from ((frame.left, frame.right) for frame in self.video.sample(count))
            return
        pairs = list(self)
        for index in range(min(count, len(pairs))):
            yield pairs[(2 * index + 1) * len(pairs) // (2 * min(count, len(pairs)))].load()


def find_pairs(left: str | os.PathLike[str], right: str | os.PathLike[str] | None = None) -> Pairs:
    """Find the pairs that the one or two arguments of `aanet predict` mean.

    Args:
        left: A left image, folder, pattern such as `scene/*_left.png`, or what `StereoVideo` takes for a
            video, camera or stream.  Without `right`: a CSV file with the columns left and right, a folder
            that holds both sides, or an image, video, camera or stream with both views side by side.
        right: The same for the right side.
    """
    first, second = os.fspath(left), None if right is None else os.fspath(right)
    kinds = [_kind(source) for source in (first, second) if source is not None]
    if second is not None:
        if kinds[0] != kinds[1]:
            raise InputError(f"{first} is {kinds[0]}, but {second} is {kinds[1]}; both must be of one kind.")
        return _BOTH[kinds[0]](first, second)
    if kinds[0] not in _ALONE:
        raise InputError(f"{first} is {kinds[0]}, which holds one side; give the right side too.")
    return _ALONE[kinds[0]](first)


def _kind(source: str) -> str:
    path, frames = Path(source), frame_source_kind(source)
    if path.is_dir():
        return "a folder"
    if frames is None and not path.exists() and glob.has_magic(source):
        return "a pattern"
    if path.suffix.lower() == ".csv":
        return "a CSV file"
    return frames or "an image"


def _from_images(left: str, right: str) -> Pairs:
    return _of_files([(Path(left), Path(right))])


def _from_two_tables(left: str, right: str) -> Pairs:
    raise InputError(f"A CSV file lists both sides; give only one of {left} and {right}.")


def _from_folders(left: str, right: str) -> Pairs:
    sides = [_images_in(Path(folder)) for folder in (left, right)]
    return _match_names(sides[0], sides[1], f"the images of {left} and {right}")


def _from_patterns(left: str, right: str) -> Pairs:
    sides = []
    for pattern in (left, right):
        found = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
        wild = re.compile(_as_regex(pattern))
        matches = [(wild.fullmatch(Path(file).as_posix()), Path(file)) for file in found]
        sides.append({"/".join(match.groups()): file for match, file in matches if match})
        if not sides[-1]:
            raise InputError(f"No file matches {pattern}.")
    return _match_names(sides[0], sides[1], f"the files of {left} and {right}")


def _as_regex(pattern: str) -> str:
    """Convert a glob pattern to a regular expression with a group for each wildcard."""
    wildcards = {"**": "(.*)", "*": "([^/]*)", "?": "([^/])"}
    parts = re.split(r"(\*\*|\*|\?|\[[^]]*\])", pattern.replace(os.sep, "/"))
    wildcards |= {part: f"({part.replace('[!', '[^')})" for part in parts if part.startswith("[")}
    return "".join(wildcards.get(part, re.escape(part)) for part in parts)


def _from_folder(folder: str) -> Pairs:
    """Pairs in one folder, by the names of files (a_left.png …) or of subfolders (left/a.png …)."""
    root = Path(folder)
    images = {file.relative_to(root): file for file in sorted(root.rglob("*")) if _is_image(file)}
    for names in _SIDES:
        sides: list[dict[str, Path]] = [{}, {}]
        for name, file in images.items():
            for side, found in zip(names, sides, strict=True):
                if (common := _without_side(name, side)) is not None:
                    found[common] = file
        if sides[0].keys() & sides[1].keys():
            return _match_names(sides[0], sides[1], f"the images of {folder}")
    expected = "folders left and right, image_2 and image_3, or names such as a_left.png and a_right.png"
    raise InputError(f"{folder} has no pairs among its {len(images)} images; expected {expected}.")


def _without_side(path: Path, side: str) -> str | None:
    """The path with the word `side` replaced by a space; None unless it occurs as a separate word."""
    # left01 contains the word left, but image_20 does not contain image_2.
    end = "[A-Za-z]" if side[-1].isalpha() else "[A-Za-z0-9]"
    word = re.compile(rf"(?<![A-Za-z]){side}(?!{end})", re.IGNORECASE)
    stem = path.with_suffix("").as_posix()
    return word.sub(" ", stem) if word.search(stem) else None


def _images_in(folder: Path) -> dict[str, Path]:
    """The images of a folder, by their names without suffix and side."""
    found = {}
    for file in sorted(folder.iterdir()):
        if _is_image(file):
            blanks = [_without_side(Path(file.name), side) for names in _SIDES for side in names]
            found[next((blank for blank in blanks if blank is not None), file.stem)] = file
    if not found:
        raise InputError(f"{folder} has no images.")
    return found


def _is_image(file: Path) -> bool:
    return file.suffix.lower() in IMAGE_SUFFIXES and not file.name.startswith(".")


def _match_names(left: dict[str, Path], right: dict[str, Path], what: str) -> Pairs:
    both = [name for name in left if name in right]
    if not both:
        examples = f"{next(iter(left.values())).name} and {next(iter(right.values())).name}"
        raise InputError(f"The names of {what} do not match: for example, {examples} are not a pair.")
    alone = [
        str(file)
        for one, other in ((left, right), (right, left))
        for name, file in one.items()
        if name not in other
    ]
    found = _of_files([(left[name], right[name]) for name in both])
    found.unmatched = alone
    return found


def _from_table(table: str) -> Pairs:
    base = Path(table).parent
    return _of_files([(base / row["left"], base / row["right"]) for row in read_table(Path(table))])


def _of_files(files: list[tuple[Path, Path]]) -> Pairs:
    names = _names([left for left, _ in files])
    pairs = [Pair(name, partial(_read, *both)) for name, both in zip(names, files, strict=True)]
    return Pairs(lambda: iter(pairs), len(pairs))


def _read(left: Path, right: Path) -> tuple[AnyImage, AnyImage]:
    return read_image(left), read_image(right)


def _names(files: list[Path]) -> list[str]:
    """Unique names: the stems if they differ, else the paths relative to the common folder."""
    if len({file.stem for file in files}) == len(files):
        return [file.stem for file in files]
    # Without "..", which would lead out of the output folder.
    plain = [Path(os.path.abspath(file)) for file in files]  # noqa: PTH100 - resolve() follows links
    try:
        common = Path(os.path.commonpath([file.parent for file in plain]))
    except ValueError:  # different drives on Windows
        return [f"{index:06d}_{file.stem}" for index, file in enumerate(plain)]
    names = [file.relative_to(common).with_suffix("").as_posix() for file in plain]
    if len(set(names)) < len(names):  # an image in several pairs, or two that differ in their suffix only
        return [f"{index:06d}_{Path(name).name}" for index, name in enumerate(names)]
    return names


def _from_frames(left: str, right: str | None = None) -> Pairs:
    video = StereoVideo(left, right)

    def named() -> Iterator[Pair]:
        for index, frame in enumerate(video):
            yield Pair(f"frame_{index:06d}", partial(_unchanged, frame), frame.time)

    return Pairs(named, video.total, name=video.name, video=video)


def _from_wide_image(path: str) -> Pairs:
    image = read_image(path)
    height, width = image.shape[:2]
    if width < 2 * height:  # a single photograph whose partner was forgotten
        raise InputError(
            f"{path} has {width}×{height} pixels, too few columns for a left and a right image side by side; "
            "give the image of the right side too."
        )
    return Pairs(lambda: iter([Pair(Path(path).stem, partial(_halves, image))]), 1)


def _halves(image: AnyImage) -> tuple[AnyImage, AnyImage]:
    half = image.shape[1] // 2
    return image[:, :half], image[:, half : 2 * half]


def _unchanged(frame: StereoFrame) -> tuple[AnyImage, AnyImage]:
    return frame.left, frame.right


_BOTH: dict[str, Callable[[str, str], Pairs]] = {
    "an image": _from_images,
    "a folder": _from_folders,
    "a pattern": _from_patterns,
    **dict.fromkeys(("a video", "a camera", "a stream"), _from_frames),
    "a CSV file": _from_two_tables,
}
_ALONE: dict[str, Callable[[str], Pairs]] = {
    "a CSV file": _from_table,
    "a folder": _from_folder,
    **dict.fromkeys(("a video", "a camera", "a stream"), _from_frames),
    "an image": _from_wide_image,
}
