"""Triton kernels, one folder for each kernel or fused layer; all of it imports triton, which a CPU does without."""
