"""Attention of short sequences in Triton, for kernels/short.py. `operator` alone imports without Triton."""
