"""Split-K attention of a decoder step in Triton, for kernels/decode.py. `launch` alone imports without Triton."""
