"""Measuring: time side by side, peak memory, and the paper's figures beside ours."""
