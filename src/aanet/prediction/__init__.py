"""Matching of many pairs: what is done with each, and the order in which it is done."""
