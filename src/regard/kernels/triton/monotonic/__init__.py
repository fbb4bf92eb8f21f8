"""Where a walk may have stopped in Triton: what attention/chances.py runs. All here import triton."""
