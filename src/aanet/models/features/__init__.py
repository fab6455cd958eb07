"""Images → features: one extractor per network family, with feature maps from fine to coarse."""

from aanet.models.features.aanet import AANetFeatures
from aanet.models.features.extractor import FeatureExtractor
from aanet.models.features.fast import FastFeatures, FastMaps
from aanet.models.features.ganet import GANetFeatures
from aanet.models.features.gcnet import GCNetFeatures
from aanet.models.features.psmnet import PSMNetFeatures
from aanet.models.features.pyramid import PyramidFeatures
from aanet.models.features.stereonet import StereoNetFeatures

__all__ = [
    "AANetFeatures",
    "FastFeatures",
    "FastMaps",
    "FeatureExtractor",
    "GANetFeatures",
    "GCNetFeatures",
    "PSMNetFeatures",
    "PyramidFeatures",
    "StereoNetFeatures",
]
