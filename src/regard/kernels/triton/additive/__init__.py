"""Fused additive attention in Triton, for kernels/additive_gpu.py, with `operator` as its interface. All import triton."""
