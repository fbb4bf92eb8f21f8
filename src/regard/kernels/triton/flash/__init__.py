"""Attention in one pass in Triton: what flash and its relatives run. `operator` and `launch` alone import without Triton.

A program takes tensors as tuples of a pointer and its strides, and its tiles as arguments; nothing is tuned by itself, so
that Triton's interpreter can run it on a CPU.
"""
