"""Work on many machines, with Ray (extra `cluster`)."""

from aanet.cluster.manifest import read_manifest
from aanet.cluster.prediction import predict

__all__ = ["predict", "read_manifest"]
