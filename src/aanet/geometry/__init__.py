"""Cameras: calibration files, rectification, and metric depth."""
