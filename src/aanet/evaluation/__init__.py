"""Evaluation with the metrics of the benchmarks, also by region; reports and submissions."""

from aanet.evaluation.evaluate import Evaluation, Matched, Matcher, PairResult, Prediction, evaluate
from aanet.evaluation.metrics import METRICS, ErrorSums, average, error_sums, fill_holes
from aanet.evaluation.protocols import protocol_of
from aanet.evaluation.sparsification import Sparsification, sparsification

__all__ = [
    "METRICS",
    "ErrorSums",
    "Evaluation",
    "Matched",
    "Matcher",
    "PairResult",
    "Prediction",
    "Sparsification",
    "average",
    "error_sums",
    "evaluate",
    "fill_holes",
    "protocol_of",
    "sparsification",
]
