"""Stereo samples, datasets, augmentation and statistics."""
