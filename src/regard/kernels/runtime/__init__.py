"""Runtime of the Triton kernels: capability checks, tile selection and compilation, without importing triton."""
