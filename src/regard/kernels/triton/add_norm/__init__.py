"""A sum and its norm in Triton, there and back: what models/residual_gpu.py runs. All here import triton."""
