"""Weights: the files in the package, checkpoints, and the names that the authors used."""
