"""Metrics: quality of outputs, with confidence intervals, and by input length."""
