"""Triton kernels, a folder for each kernel or fused layer; all of it imports triton, which a CPU goes without."""
