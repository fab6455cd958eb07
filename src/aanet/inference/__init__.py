"""The steps around a network in a prediction: checks, padding, tiling, post-processing."""
