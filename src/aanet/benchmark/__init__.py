"""Benchmarks of time and peak memory, compared with the figures of the paper."""
