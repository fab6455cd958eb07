"""Write synthetic pairs to files in the layout of Scene Flow's FlyingThings3D."""

from __future__ import annotations

from pathlib import Path

from aanet.io.disparity import write_pfm
from aanet.io.images import write_image
from aanet.synthetic.world import SyntheticWorld

FIRST_FRAME = 6  # FlyingThings3D's sequences run from 0006 to 0015
FRAMES = 10
SEQUENCES = 10_000  # per letter


def sequence_and_frame(index: int) -> str:
    """Return the path of pair `index` in FlyingThings3D's layout, such as `A/0000/{side}/0006`."""
    sequence, frame = divmod(index, FRAMES)
    letter, sequence = divmod(sequence, SEQUENCES)
    return f"{chr(ord('A') + letter)}/{sequence:04d}/{{side}}/{FIRST_FRAME + frame:04d}"


def pair_files(index: int) -> list[str]:
    """The files of pair `index` below `root`, in the order in which `write_pair` writes them."""
    location = sequence_and_frame(index)
    return [
        f"FlyingThings3D/{kind}/TRAIN/{location.format(side=side)}{suffix}"
        for side in ("right", "left")
        for kind, suffix in (("disparity", ".pfm"), ("frames_finalpass", ".png"))
    ]


def write_pair(world: SyntheticWorld, index: int, root: Path) -> None:
    """Render pair `index` and write both images and both disparity maps under `root/FlyingThings3D`.

    The left image is the last, because datasets find pairs by it: an interruption leaves no incomplete pair.
    """
    sample, files = world[index], [root / name for name in pair_files(index)]
    maps = (sample.right_disparity, sample.disparity)
    assert maps[0] is not None and maps[1] is not None  # noqa: PT018 - the world knows both
    write_pfm(files[0], maps[0])
    write_image(files[1], sample.right)
    write_pfm(files[2], maps[1])
    write_image(files[3], sample.left)
