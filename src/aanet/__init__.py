"""Learned stereo matching that runs anywhere: AANet (CVPR 2020) and the networks it was compared with."""

__version__ = "0.1.0"
