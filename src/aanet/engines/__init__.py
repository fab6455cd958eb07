"""What computes a disparity: one small protocol, one table of engines, one file for each."""
