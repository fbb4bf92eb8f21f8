"""FlashAttention kernels in Triton, for kernels/flash.py and others. `operator` and `launch` import without Triton.

A kernel takes tensors as tuples of a pointer and its strides, and tile sizes as arguments; there is no autotuning, so that
Triton's interpreter can run it on a CPU.
"""
