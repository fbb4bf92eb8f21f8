"""A sum and its norm in Triton, there and back: what models/layers/add_norm.py runs. All here import triton."""
