"""The additive score in Triton: what additive_gpu runs. Only `operator` is meant for others; all here import triton."""
