"""The engine: plain search on a CPU, made for speed. What it finds is what `decoding` finds.

decoding/beam.py and greedy.py are the reference, and know every option. Where nothing is asked for but the best targets,
this is the same search with its bookkeeping in arrays (`beam.py`, `greedy.py`), over a decoder whose step is built from its
weights (`transformer.py`, `recurrent.py`, `convolution.py`) or over any other as it is (`any.py`). A Transformer reads its
source so too (`encoder.py`). In int8 the matrices are rounded (`affine.py`). Where compiling is asked for, the whole search
is machine code (`compiled`).
"""
