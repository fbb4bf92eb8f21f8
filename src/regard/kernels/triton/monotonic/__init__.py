"""Where a walk may have stopped in Triton: what attention/expected_monotonic.py runs. All here import triton."""
