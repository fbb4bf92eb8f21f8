"""Sparsemax and entmax in Triton: what simplex runs. `operator` and `launch` alone import without Triton."""
