"""The engine on a GPU: the same search, in which the host says "go on" and hardly ever looks.

A decoder's step is some hundred small kernels, and a GPU waits longer for each to be launched than it computes. So every
tensor of a step has its place for good (`cached.py`, `carried.py`), the choice of tokens is made where the logits are
(`greedy.py`, `beam.py`), and a whole step is one CUDA graph (`replayed.py`). Where there is Triton, a Transformer's kernels
are fewer, and read no key that a row does not see (`fused.py`). Every few steps the host fetches what was written
(`told.py`) and packs what still grows into less room (`search.py`). Encoders are replayed too (`encoded.py`).
On a CPU the same code runs kernel by kernel, which is how it is tested.
"""
