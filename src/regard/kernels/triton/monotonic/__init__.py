"""Expected monotonic alignment in Triton, for attention/expected_monotonic.py. All files import triton."""
