"""Bundled weights, checkpoint files, and the authors' released checkpoints."""
