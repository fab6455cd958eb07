"""Find pairs: files, folders, patterns, a CSV file, or frames of videos, cameras, streams and recordings."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path

from aanet.errors import InputError
from aanet.io.bags import DEFAULT_TOLERANCE_S, StereoBag, is_recording
from aanet.io.frames import StereoFrame, StereoVideo, frame_source_kind
from aanet.io.images import IMAGE_SUFFIXES, AnyImage, read_image
from aanet.io.pair_names import naming_of
from aanet.io.sides import SIDES, without_side
from aanet.io.tables import read_table


@dataclass(frozen=True)
class Pair:
    """A pair to match; `load` reads its images."""

    name: str  # the beginning of the names of its output files; may contain "/"
    load: Callable[[], tuple[AnyImage, AnyImage]] = field(repr=False)
    time: float | None = None  # of a frame, in seconds since the beginning; the time stamp of a recording
    files: tuple[Path, Path] | None = None  # left and right, if each side has a file of its own


@dataclass
class Pairs:
    """The pairs that were found, in order."""

    pairs: Callable[[], Iterator[Pair]]
    total: int | None  # None for a video that does not state its length
    unmatched: list[str] = field(default_factory=list)  # files of one side without a partner
    name: str = "pairs"  # of a file with the results of all pairs
    video: StereoVideo | StereoBag | None = None  # the pairs are frames of it

    def __iter__(self) -> Iterator[Pair]:
        return self.pairs()

    def sample(self, count: int) -> Iterator[tuple[AnyImage, AnyImage]]:
        """Images of up to `count` pairs, evenly distributed; of a camera only the first frame."""
        if isinstance(self.video, StereoBag):
            yield from (frame.load() for frame in self.video.sample(count))
            return
        if self.video is not None:
            yield from ((frame.left, frame.right) for frame in self.video.sample(count))
            return
        assert self.total is not None
        count = min(count, self.total)
        wanted = {(2 * index + 1) * self.total // (2 * count) for index in range(count)}
        yield from (pair.load() for place, pair in enumerate(self) if place in wanted)

    def shard(self, number: int, count: int) -> Pairs:
        """Every `count`-th pair from the given one on, counted from 1; all shards together are the list."""
        if self.video is not None or self.total is None:
            raise InputError("Only still pairs can be split into shards; these are frames.")
        return replace(
            self,
            pairs=lambda: islice(self.pairs(), number - 1, None, count),
            total=len(range(number - 1, self.total, count)),
            unmatched=self.unmatched[number - 1 :: count],
        )


def find_pairs(
    left: str | os.PathLike[str],
    right: str | os.PathLike[str] | None = None,
    *,
    topics: tuple[str, str] | None = None,
    tolerance: float = DEFAULT_TOLERANCE_S,
) -> Pairs:
    """Find the pairs that the one or two arguments of `aanet predict` mean.

    Args:
        left: A left image, folder, pattern such as `scene/*_left.png`, or what `StereoVideo` takes for a
            video, camera or stream.  Without `right`: a CSV file with the columns left and right, a folder
            that holds both sides, an image, video, camera or stream with both views side by side, or a ROS
            recording.
        right: The same for the right side.
        topics: The image topics of a recording; found by their names if they are not given.
        tolerance: The largest difference between the time stamps of a pair of a recording, in seconds.
    """
    first, second = os.fspath(left), None if right is None else os.fspath(right)
    kinds = [_kind(source) for source in (first, second) if source is not None]
    if _RECORDING in kinds:
        if second is not None:
            raise InputError(f"A ROS recording holds both sides; give only one of {first} and {second}.")
        return _from_recording(StereoBag(first, topics, tolerance))
    if topics is not None:
        raise InputError(f"Topics can be named for a ROS recording only; {first} is {kinds[0]}.")
    if second is not None:
        if kinds[0] != kinds[1]:
            raise InputError(f"{first} is {kinds[0]}, but {second} is {kinds[1]}; both must be of one kind.")
        return _BOTH[kinds[0]](first, second)
    if kinds[0] not in _ALONE:
        raise InputError(f"{first} is {kinds[0]}, which holds one side; give the right side too.")
    return _ALONE[kinds[0]](first)


def _kind(source: str) -> str:
    path, frames = Path(source), frame_source_kind(source)
    if frames is None and is_recording(path):
        return _RECORDING
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
    # Half-written files are in hidden folders.
    images = {n: file for n, file in images.items() if not any(part.startswith(".") for part in n.parts)}
    sides = both_sides(images)
    if sides is not None:
        left, right = ({name: images[file] for name, file in side.items()} for side in sides)
        return _match_names(left, right, f"the images of {folder}")
    expected = "folders left and right, image_2 and image_3, or names such as a_left.png and a_right.png"
    raise InputError(f"{folder} has no pairs among its {len(images)} images; expected {expected}.")


def both_sides(images: Iterable[Path]) -> tuple[dict[str, Path], dict[str, Path]] | None:
    """The images of the left and of the right side by their common names; None if there is no pair.

    Args:
        images: Paths in one folder, which tell the side by the name of the file or of a folder.
    """
    images = list(images)
    for names in SIDES:
        sides: tuple[dict[str, Path], dict[str, Path]] = ({}, {})
        for image in images:
            for side, found in zip(names, sides, strict=True):
                if (common := without_side(image.with_suffix("").as_posix(), side)) is not None:
                    found[common] = image
        if sides[0].keys() & sides[1].keys():
            return sides
    return None


def _images_in(folder: Path) -> dict[str, Path]:
    """The images of a folder, by their names without suffix and side."""
    found = {}
    for file in sorted(folder.iterdir()):
        if _is_image(file):
            blanks = [without_side(file.stem, side) for names in SIDES for side in names]
            found[next((blank for blank in blanks if blank is not None), file.stem)] = file
    if not found:
        raise InputError(f"{folder} has no images.")
    return found


def _is_image(file: Path) -> bool:
    return file.suffix.lower() in IMAGE_SUFFIXES and not file.name.startswith(".")


def find_side_by_side(source: str | os.PathLike[str]) -> Pairs:
    """Find the images of a folder or pattern, or the frames of a video, that show both views side by side."""
    name = os.fspath(source)
    kind = _kind(name)
    if kind == "a folder":
        files = [file for file in sorted(Path(name).iterdir()) if _is_image(file)]
    elif kind == "a pattern":
        files = [Path(file) for file in sorted(glob.glob(name, recursive=True))]  # noqa: PTH207 - as above
    else:
        return find_pairs(name)
    if not files:
        raise InputError(f"{name} has no images.")
    naming = naming_of(map(str, files))
    pairs = [
        Pair(naming.name(place, str(file)), partial(_read_halves, file)) for place, file in enumerate(files)
    ]
    return Pairs(lambda: iter(pairs), len(pairs))


def _read_halves(file: Path) -> tuple[AnyImage, AnyImage]:
    return _halves(read_image(file))


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
    rows = read_table(Path(table))
    return _of_files([(row["left"], row["right"]) for row in rows], Path(table).parent)


def _of_files(files: Sequence[tuple[Path | str, Path | str]], base: Path = Path()) -> Pairs:
    """The pairs of these files; what is longer than their paths is made when its turn comes."""
    naming = naming_of(str(base / left) for left, _ in files)

    def found() -> Iterator[Pair]:
        for place, (left, right) in enumerate(files):
            both = (base / left, base / right)
            yield Pair(naming.name(place, str(both[0])), partial(_read, *both), files=both)

    return Pairs(found, len(files))


def _read(left: Path, right: Path) -> tuple[AnyImage, AnyImage]:
    return read_image(left), read_image(right)


def _from_frames(left: str, right: str | None = None) -> Pairs:
    video = StereoVideo(left, right)

    def named() -> Iterator[Pair]:
        for index, frame in enumerate(video):
            yield Pair(f"frame_{index:06d}", partial(_unchanged, frame), frame.time)

    return Pairs(named, video.total, name=video.name, video=video)


def _from_recording(bag: StereoBag) -> Pairs:
    def named() -> Iterator[Pair]:
        for frame in bag:
            yield Pair(frame.name, frame.load, frame.stamp_ns / 1e9)

    return Pairs(named, bag.total, bag.unmatched, bag.name, bag)


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


_RECORDING = "a ROS recording"
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
