"""Published zero-shot scores, in percent of wrong pixels, of networks trained on Scene Flow alone."""

from __future__ import annotations

from dataclasses import dataclass

Scores = dict[str, dict[str, float]]  # by benchmark and metric

TRAINED_ON = "Scene Flow"

# How far each goes is said with it; the protocols of publications differ in details.
SOURCES: dict[int, str] = {
    1: "Lipson et al., RAFT-Stereo, 3DV 2021, table 1: errors above 3 px on KITTI 2015, 2 px on Middlebury "
    "and 1 px on ETH3D, for which it does not say whether occluded pixels count",
    2: "Zhang et al., Domain-invariant Stereo Matching Networks (DSMNet), ECCV 2020, for KITTI 2012",
    3: "Tankovich et al., HITNet, CVPR 2021",
}


@dataclass(frozen=True)
class Published:
    """A row of the table, with the numbers of its sources."""

    method: str
    scores: Scores
    sources: tuple[int, ...]

    @property
    def row_name(self) -> str:
        """The method and its sources, as in `PSMNet [1, 2]`."""
        return f"{self.method} [{', '.join(map(str, self.sources))}]"


def _compared(
    method: str, kitti: tuple[float, float], qhf: tuple[float, float, float], eth3d: float
) -> Published:
    """A row of the comparison that [1] and [2] share."""
    middlebury = {f"middlebury-{size}": {"bad2_noc": value} for size, value in zip("QHF", qhf, strict=True)}
    years = {f"kitti{year}": {"d1_all": value} for year, value in zip((2012, 2015), kitti, strict=True)}
    return Published(method, {**years, **middlebury, "eth3d": {"bad1": eth3d}}, (1, 2))


PUBLISHED: tuple[Published, ...] = (
    _compared("PSMNet", (15.1, 16.3), (14.2, 25.1, 39.5), 23.8),
    _compared("GwcNet", (20.2, 22.7), (18.1, 34.2, 47.1), 30.1),
    _compared("GA-Net", (10.1, 11.7), (11.2, 20.3, 32.2), 14.1),
    _compared("DSMNet", (6.2, 6.5), (8.1, 13.8, 21.8), 6.2),
    Published("HITNet", {"kitti2015": {"d1_all": 6.5}}, (3,)),
)
