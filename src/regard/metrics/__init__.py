"""Metrics: how good outputs are, how sure that is, and how it depends on the input."""
