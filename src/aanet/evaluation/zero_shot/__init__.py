"""Zero-shot generalization: scores on the pairs of benchmarks that a network was not trained on.

`benchmarks` is the protocol, `table` the results of models, `published` those of publications, and `bundled`
where the bundled weights stand.
"""
