"""Stereo geometry: calibration files, rectification, and depth in meters."""
