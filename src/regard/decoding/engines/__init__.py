"""Decoding engines: fast search and encoding with the same results as the eager reference in `decoding`.

decoding/beam.py and greedy.py are the reference, and have every option. For plain search (the best hypotheses alone), this
is the same search with its bookkeeping in arrays (`beam.py`, `greedy.py`), over a decoder step built from the weights
(`cpu/`) or over the module itself (`eager.py`). With `compile` the whole search is C++ (`cpp/`); on a GPU it is replayed as
CUDA graphs (`cuda/`). In int8 the matrices are quantised (`cpu/linear.py`).
"""
