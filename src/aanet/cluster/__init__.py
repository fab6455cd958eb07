"""Prediction, evaluation and serving on a Ray cluster (extra `cluster`)."""
