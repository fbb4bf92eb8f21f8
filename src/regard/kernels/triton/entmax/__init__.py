"""Fused sparsemax and entmax attention in Triton, for kernels/entmax.py. `operator` and `launch` import without Triton."""
