"""Decoding engines: three implementations of plain search, with equal results, and the selection of one.

`decoding/beam.py` and `greedy.py` are the reference, which has every option. Plain search (the best hypotheses alone) is
implemented as well by

- `eager/`: PyTorch on a CPU. Decoder steps are functions of prepared weights, in float32 or int8, or the module's own; the
  search keeps its bookkeeping in NumPy arrays.
- `cpp/`: C++ on a CPU, the whole search in one call, compiled on request (`--compile`).
- `cuda/`: CUDA graphs on a GPU, with Triton kernels for a Transformer.
"""
