"""The results published in the AANet paper, for comparison.

Every dictionary is one table of the paper, keyed by our network names; methods that are not part of this
package have names of the same style.  `None` is a dash in the table.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AblationRow:
    """Table 1: ablation of ISA and CSA; Scene Flow test set, and 40 validation pairs of KITTI 2015."""

    method: str
    sceneflow_epe: float
    sceneflow_bad1: float
    kitti2015_epe: float
    kitti2015_d1_all: float


ABLATION: dict[str, AblationRow] = {
    "aanet_no_isa_csa": AblationRow("w/o ISA & CSA", 1.10, 10.9, 0.75, 2.63),
    "aanet_no_isa": AblationRow("w/o ISA", 0.97, 10.1, 0.70, 2.22),
    "aanet_no_csa": AblationRow("w/o CSA", 0.99, 10.1, 0.69, 2.31),
    "aanet": AblationRow("AANet", 0.87, 9.3, 0.68, 2.29),
}


@dataclass(frozen=True)
class ComparisonRow:
    """Table 2: 3D convolutions against adaptive aggregation; Scene Flow test set, 576×960 on one V100."""

    method: str
    convolutions_3d: int
    deformable_convolutions: int
    csa_modules: int
    epe: float
    bad1: float | None
    parameters_m: float
    macs_g: float
    memory_gb: float
    time_ms: int


COMPARISON_3D: dict[str, ComparisonRow] = {
    "stereonet": ComparisonRow("StereoNet", 4, 0, 0, 1.10, None, 0.62, 106.89, 1.41, 23),
    "stereonet_aa": ComparisonRow("StereoNet-AA", 0, 4, 0, 1.08, 12.9, 0.53, 88.17, 1.38, 17),
    "gcnet": ComparisonRow("GC-Net", 19, 0, 0, 2.51, 16.9, 2.85, 1754.10, 21.52, 3731),
    "gcnet_aa": ComparisonRow("GC-Net-AA", 0, 9, 6, 0.98, 10.8, 2.15, 212.59, 1.97, 91),
    "psmnet": ComparisonRow("PSMNet", 25, 0, 0, 1.09, 12.1, 5.22, 613.90, 4.08, 317),
    "psmnet_aa": ComparisonRow("PSMNet-AA", 0, 9, 6, 0.97, 10.2, 4.15, 208.73, 1.58, 77),
    "ganet": ComparisonRow("GA-Net", 15, 0, 0, 0.84, 9.9, 4.60, 1439.57, 6.23, 2211),
    "ganet_aa": ComparisonRow("GA-Net-AA", 0, 14, 6, 0.87, 9.2, 3.68, 119.64, 1.63, 57),
}


@dataclass(frozen=True)
class SceneFlowRow:
    """Table 3: EPE on the Scene Flow test set and the time of one pair."""

    method: str
    epe: float
    time_s: float


SCENE_FLOW: dict[str, SceneFlowRow] = {
    "gcnet": SceneFlowRow("GC-Net", 2.51, 0.9),
    "psmnet": SceneFlowRow("PSMNet", 1.09, 0.41),
    "ganet": SceneFlowRow("GA-Net", 0.84, 1.5),
    "deeppruner_best": SceneFlowRow("DeepPruner-Best", 0.86, 0.182),
    "dispnetc": SceneFlowRow("DispNetC", 1.68, 0.06),
    "stereonet": SceneFlowRow("StereoNet", 1.10, 0.015),
    "aanet": SceneFlowRow("AANet", 0.87, 0.068),
    "aanet_plus": SceneFlowRow("AANet+", 0.72, 0.064),
}


@dataclass(frozen=True)
class KittiRow:
    """Table 4: the official test sets of KITTI 2012 (Out-Noc, Out-All) and KITTI 2015 (D1-bg, D1-all)."""

    method: str
    out_noc: float | None
    out_all: float | None
    d1_bg: float
    d1_all: float
    time_s: float


KITTI: dict[str, KittiRow] = {
    "mc_cnn": KittiRow("MC-CNN", 2.43, 3.63, 2.89, 3.89, 67),
    "gcnet": KittiRow("GC-Net", 1.77, 2.30, 2.21, 2.87, 0.9),
    "psmnet": KittiRow("PSMNet", 1.49, 1.89, 1.86, 2.32, 0.41),
    "deeppruner_best": KittiRow("DeepPruner-Best", None, None, 1.87, 2.15, 0.182),
    "iresnet_i2": KittiRow("iResNet-i2", 1.71, 2.16, 2.25, 2.44, 0.12),
    "hd3": KittiRow("HD3", 1.40, 1.80, 1.70, 2.02, 0.14),
    "gwcnet": KittiRow("GwcNet", 1.32, 1.70, 1.74, 2.11, 0.32),
    "ganet": KittiRow("GA-Net", 1.36, 1.80, 1.55, 1.93, 1.5),
    "aanet_plus": KittiRow("AANet+", 1.55, 2.04, 1.65, 2.03, 0.06),
    "stereonet": KittiRow("StereoNet", 4.91, 6.02, 4.30, 4.83, 0.015),
    "madnet": KittiRow("MADNet", None, None, 3.75, 4.66, 0.02),
    "dispnetc": KittiRow("DispNetC", 4.11, 4.65, 4.32, 4.34, 0.06),
    "deeppruner_fast": KittiRow("DeepPruner-Fast", None, None, 2.32, 2.59, 0.061),
    "aanet": KittiRow("AANet", 1.91, 2.42, 1.99, 2.55, 0.062),
}


@dataclass(frozen=True)
class Size:
    """The size of a network that is not in table 2, counted as there: at 576×960, for disparities below 192.

    The numbers are those of the published code; the text rounds the parameters to 3.9 M and 8.4 M.
    """

    parameters_m: float
    macs_g: float


SIZE: dict[str, Size] = {"aanet": Size(3.932, 133.92), "aanet_plus": Size(8.443, 191.98)}


@dataclass(frozen=True)
class Published:
    """A published row to print next to our result, with the metric names of `aanet.evaluation`."""

    method: str
    table: int
    measured_on: str
    metrics: dict[str, float]


def published(dataset: str, network: str) -> Published | None:
    """Return the paper's results for a network on a dataset, or None.

    The datasets are `sceneflow`, `kitti2012` and `kitti2015`; a network may have a tag (`aanet:x`).  Those of
    KITTI 2015 are those of the validation split if the paper has them, else those of the test server.
    """
    name = network.split(":", maxsplit=1)[0]
    if dataset == "sceneflow":
        return _sceneflow(name)
    if dataset == "kitti2015" and name in ABLATION:
        ablation = ABLATION[name]
        metrics = {"epe": ablation.kitti2015_epe, "d1_all": ablation.kitti2015_d1_all}
        return Published(ablation.method, 1, "KITTI 2015, 40 validation pairs", metrics)
    if dataset == "kitti2015" and name in KITTI:
        row = KITTI[name]
        metrics = {"d1_bg": row.d1_bg, "d1_all": row.d1_all}
        return Published(row.method, 4, "KITTI 2015 test set", metrics)
    if dataset == "kitti2012" and name in KITTI:
        row = KITTI[name]
        if row.out_noc is not None and row.out_all is not None:
            metrics = {"out_noc": row.out_noc, "out_all": row.out_all}
            return Published(row.method, 4, "KITTI 2012 test set", metrics)
    return None


def _sceneflow(name: str) -> Published | None:
    where = "Scene Flow test set"
    if name in ABLATION:
        ablation = ABLATION[name]
        metrics = {"epe": ablation.sceneflow_epe, "bad1": ablation.sceneflow_bad1}
        return Published(ablation.method, 1, where, metrics)
    if name in COMPARISON_3D:
        row = COMPARISON_3D[name]
        metrics = {"epe": row.epe} | ({} if row.bad1 is None else {"bad1": row.bad1})
        return Published(row.method, 2, where, metrics)
    if name in SCENE_FLOW:
        return Published(SCENE_FLOW[name].method, 3, where, {"epe": SCENE_FLOW[name].epe})
    return None
