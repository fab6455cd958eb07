"""Which disparity map of a folder belongs to which pair of a dataset, by name.

A map is named after its pair if the end of its path, without suffix, is the end of the path of the left image
or of the ground truth, or the key of the pair: for the KITTI pair `training/image_2/000007_10.png`, these are
`training/image_2/000007_10`, `image_2/000007_10`, `000007_10`, `disp_occ_0/000007_10`, `000007` and so on.
Ends that several pairs share, such as `im0`, name none of them. The key may also be the folder of the map, as
in Middlebury's `trainingH/Adirondack/disp0METHOD.pfm`, and the parts of a key may be joined by `_` or `-`.
The longest end decides.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from aanet.data.datasets import PairFiles, StereoDataset
from aanet.errors import InputError, ReadError
from aanet.io.disparity import DISPARITY_SUFFIXES

Parts = tuple[str, ...]
Index = dict[Parts, list[PurePosixPath]]

# What programs append to the name of a pair, as `aanet predict` does.
_APPENDED = re.compile(r"[_.-](?:disp(?:arity)?0?|pred(?:iction)?|left)$", re.IGNORECASE)
_OF_SCENE = re.compile(r"disp(?:arity)?(?:0\w*)?|pred(?:iction)?|left_disparity", re.IGNORECASE)
_MAX_FILES = 1_000_000


@dataclass(frozen=True)
class MapFiles:
    """The disparity maps of a folder.

    Attributes:
        folder: The folder.
        of_pairs: The maps by the index of their pair in the dataset.
        unused: Maps that belong to no pair, relative to the folder.
    """

    folder: Path
    of_pairs: dict[int, Path]
    unused: list[str]


def find_maps(folder: Path, dataset: StereoDataset) -> MapFiles:
    """Find the maps of a dataset's pairs in a folder and its subfolders.

    Raises:
        InputError: If two maps are named after one pair, or none after any.
    """
    own = {path.resolve() for pair in dataset.pairs for path in _files_of(pair)}
    files = [path for path in _list(folder) if (folder / path).resolve() not in own]
    names = [_names(pair, dataset.root) for pair in dataset.pairs]
    uses = Counter(name for candidates in names for name in set(candidates))
    telling = [[name for name in candidates if uses[name] == 1] for candidates in names]
    of_pairs: dict[int, PurePosixPath] = {}
    # What is appended to a name is ignored only of files whose full name fits no pair.
    for index_of in (_by_end, _by_end_without_appendix, _by_folder):
        used = set(of_pairs.values())
        index = index_of([file for file in files if file not in used])
        for place, candidates in enumerate(telling):
            key = PurePosixPath(dataset.pairs[place].key).parts
            wanted = [key] if index_of is _by_folder else candidates
            found = next((index[name] for name in wanted if name in index), [])
            if place in of_pairs or not found:
                continue
            if len(found) > 1:
                raise InputError(
                    f"{folder} has {len(found)} maps for {dataset.name} {dataset.pairs[place].key}: "
                    f"{found[0]} and {found[1]}; give the folder of one of them."
                )
            of_pairs[place] = found[0]
    if not of_pairs:
        raise InputError(_nothing_found(folder, files, dataset, names[0]))
    used = set(of_pairs.values())
    unused = [str(file) for file in files if file not in used]
    return MapFiles(folder, {place: folder / file for place, file in of_pairs.items()}, unused)


def _list(folder: Path) -> list[PurePosixPath]:
    """The maps in the folder, relative to it; hidden files and folders are ignored."""
    if not folder.is_dir():
        raise ReadError(f"There is no folder {folder} of predicted disparity maps.")
    files: list[PurePosixPath] = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inside = PurePosixPath(Path(place).relative_to(folder).as_posix())
        known = (name for name in sorted(names) if Path(name).suffix.lower() in DISPARITY_SUFFIXES)
        files += [inside / name for name in known if not name.startswith(".")]
        if len(files) > _MAX_FILES:
            raise ReadError(f"{folder} has more than {_MAX_FILES} files.")
    return files


def _files_of(pair: PairFiles) -> list[Path]:
    """The files of a dataset that are not predictions, should these be in its folders."""
    own = (pair.left, pair.right, pair.disparity, pair.visible, pair.objects)
    return [path for path in own if path is not None]


def _names(pair: PairFiles, root: Path) -> list[Parts]:
    """The names of a map of this pair, the longest first."""
    key = PurePosixPath(pair.key).parts
    names: list[Parts] = []
    for path in (pair.left, pair.disparity):
        if path is not None and path.is_relative_to(root):
            names += _ends(path.relative_to(root).with_suffix("").parts)
    names += [*_ends(key), ("_".join(key),), ("-".join(key),)]
    return sorted(dict.fromkeys(names), key=len, reverse=True)


def _ends(parts: Parts) -> list[Parts]:
    return [parts[start:] for start in range(len(parts))]


def _by_end(files: Sequence[PurePosixPath]) -> Index:
    """The files by the ends of their paths without suffix."""
    return _group((end, file) for file in files for end in _ends(file.with_suffix("").parts))


def _by_end_without_appendix(files: Sequence[PurePosixPath]) -> Index:
    stems = ((file, _APPENDED.sub("", file.stem)) for file in files)
    return _group((end, file) for file, stem in stems for end in _ends((*file.parts[:-1], stem)))


def _by_folder(files: Sequence[PurePosixPath]) -> Index:
    """The maps of scenes by the ends of their folders: the only file there, or what is called a disparity."""
    inside = _group((end, file) for file in files for end in _ends(file.parts[:-1]))
    named = {end: [file for file in found if _OF_SCENE.fullmatch(file.stem)] for end, found in inside.items()}
    return {end: named[end] or found for end, found in inside.items()}


def _group(pairs: Iterable[tuple[Parts, PurePosixPath]]) -> Index:
    index: defaultdict[Parts, list[PurePosixPath]] = defaultdict(list)
    for name, file in pairs:
        index[name].append(file)
    return dict(index)


def _nothing_found(
    folder: Path, files: Sequence[PurePosixPath], dataset: StereoDataset, names: Sequence[Parts]
) -> str:
    if not files:
        return f"{folder} has no disparity maps ({', '.join(DISPARITY_SUFFIXES)})."
    return (
        f"None of the {len(files)} files in {folder}, such as {files[0]}, is named after a pair of "
        f"{dataset.name}; that of {dataset.pairs[0].key} could be {'/'.join(names[-1])}{files[0].suffix}."
    )
