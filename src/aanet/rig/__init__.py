"""Calibration of a stereo rig: the board, its corners in the photographs, the cameras, and a report."""
