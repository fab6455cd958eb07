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


def write_pair(world: SyntheticWorld, index: int, root: Path) -> None:
    """Render pair `index` and write both images and both disparity maps under `root/FlyingThings3D`.

    The left image is the last, because datasets find pairs by it: an interruption leaves no incomplete pair.
    """
    sample = world[index]
    location = sequence_and_frame(index)
    frames, disparities = (
        root / "FlyingThings3D" / name / "TRAIN" for name in ("frames_finalpass", "disparity")
    )
    for side, image, disparity in (
        ("right", sample.right, sample.right_disparity),
        ("left", sample.left, sample.disparity),
    ):
        if disparity is not None:
            write_pfm(disparities / f"{location.format(side=side)}.pfm", disparity)
        write_image(frames / f"{location.format(side=side)}.png", image)
