"""Runtime of the Triton kernels: capability checks, tile selection, compilation and fallback, without importing triton."""
