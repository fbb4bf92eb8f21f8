"""Fused residual add and norm in Triton, forward and backward, for models/layers/add_norm.py. All files import triton."""
