"""The networks: one place for each step from images to disparity."""

from aanet.models.network import Architecture, StereoNetwork, StereoOutput, normalize

__all__ = ["Architecture", "StereoNetwork", "StereoOutput", "normalize"]
